"""Opening a connection in a way that another thread can break off.

A name that does not resolve, a host that drops packets and a handshake that is never
answered can each hang for longer than anybody waits, and no socket exists yet to shut.
"""

from __future__ import annotations

import http.client
import queue
import threading


class Dial:
    """One connection on its way. It knows nothing of what is sent over it."""

    def __init__(self, connection: http.client.HTTPConnection):
        self._connection = connection
        self._outcome: queue.SimpleQueue = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._left = False

    def open(self) -> http.client.HTTPConnection:
        """The connection, open. Its own timeout holds for each address of the host.

        Raises what connecting raises; ConnectionAbortedError after abort. The attempt
        goes on in a thread of its own, which closes what comes too late.
        """
        threading.Thread(target=self._work, name="eigenhead-dial", daemon=True).start()
        error = self._outcome.get()
        with self._lock:
            if error is None and not self._left:
                return self._connection
            self._left = True
        self._connection.close()
        raise error or ConnectionAbortedError("broken off")

    def abort(self) -> None:
        """Makes open return, from another thread, now or when it is called."""
        with self._lock:
            self._left = True
        self._outcome.put(ConnectionAbortedError("broken off"))

    def _work(self) -> None:
        try:
            self._connection.connect()
        except Exception as err:  # whatever it is, open raises it
            self._outcome.put(err)
            return
        with self._lock:
            late = self._left
        if late:
            self._connection.close()
        self._outcome.put(None)
