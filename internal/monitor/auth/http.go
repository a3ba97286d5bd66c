package auth

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"
)

// CookieName is the browser's session.
const CookieName = "eigenhead_session"

// sessionAge is how long a browser stays logged in. Chosen, not derived: longer
// than most training runs.
const sessionAge = 30 * 24 * time.Hour

// Allowed reports whether r shows the token (Authorization: Bearer TOKEN) or a
// session. A cookie lets a request change something only where the browser says
// that our own page sent it: SameSite alone leaves other ports of the host.
func (g *Guard) Allowed(r *http.Request) bool {
	if g.open {
		return sameOrigin(r) && loopbackHost(r.Host)
	}
	if token, ok := bearer(r); ok {
		return g.isToken(token)
	}
	c, err := r.Cookie(CookieName)
	return err == nil && g.isSession(c.Value) && sameOrigin(r)
}

// NeedsLogin reports whether there is a token at all: false for Everyone.
func (g *Guard) NeedsLogin() bool { return !g.open }

// Middleware answers 401 with a JSON error where Allowed says no (403 where there is
// no token to show). It is for interfaces of programs; a page asks Allowed and shows
// its login.
func (g *Guard) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.Allowed(r):
			next.ServeHTTP(w, r)
		case g.open:
			refuse(w, http.StatusForbidden, "the request comes from another site",
				"without a token only requests to localhost by this machine's own programs and pages are answered")
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="eigenhead"`)
			refuse(w, http.StatusUnauthorized, "no token, or a wrong one",
				"send Authorization: Bearer TOKEN; eigenhead serve --new-token makes a new one")
		}
	})
}

func refuse(w http.ResponseWriter, status int, text, hint string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close") // a body that nobody reads stays unread
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text, "hint": hint})
}

// Login opens a session where token is right, by setting a cookie, and reports
// whether it was.
func (g *Guard) Login(w http.ResponseWriter, token string) bool {
	token = strings.TrimSpace(token)
	if g.open {
		return true
	}
	if !g.isToken(token) {
		return false
	}
	http.SetCookie(w, g.cookie(sessionOf(token), int(sessionAge.Seconds())))
	return true
}

// Logout ends the browser's session.
func (g *Guard) Logout(w http.ResponseWriter) { http.SetCookie(w, g.cookie("", -1)) }

func (g *Guard) cookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: CookieName, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: g.Secure, SameSite: http.SameSiteStrictMode}
}

func bearer(r *http.Request) (string, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

// sameOrigin refuses what another site's page made the browser send. Programs send
// neither header and pass.
func sameOrigin(r *http.Request) bool { return http.NewCrossOriginProtection().Check(r) == nil }

// loopbackHost keeps a name of elsewhere, made to point at this machine, from reading
// what needs no token.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Loopback reports whether the listening address addr ("127.0.0.1:7070") can be
// reached from this machine only. A name other than localhost is not looked up.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && host != "" && loopbackHost(host)
}
