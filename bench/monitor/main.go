// Command monitor measures the training monitor as its users meet it: a real
// `eigenhead serve` process, HTTP clients, captures of 64 KiB (4 layers of 4 heads, 32
// tokens, 16 dimensions).
//
//	go run ./bench/monitor [-seconds 30] [-server eigenhead] [-dir DIR]
//
// It prints how many captures a second are acknowledged durably while they are
// measured at the same time, how many are measured a second when nothing else is to
// do, and the server's peak memory when ten times the target comes in.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// target is what is promised: captures a second, acknowledged durably.
const target = 200

func main() {
	seconds := flag.Int("seconds", 30, "length of each load")
	binary := flag.String("server", "", "the eigenhead program; empty: it is built")
	dir := flag.String("dir", "", "where the stores are put, on the disk to be measured; empty: the system's temporary folder")
	flag.Parse()
	if err := run(time.Duration(*seconds)*time.Second, *binary, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "monitor:", err)
		os.Exit(1)
	}
}

func run(length time.Duration, binary, dir string) error {
	dir, err := os.MkdirTemp(dir, "eigenhead-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if binary == "" {
		binary = filepath.Join(dir, "eigenhead")
		if out, err := exec.Command("go", "build", "-o", binary, "./cmd/eigenhead").CombinedOutput(); err != nil {
			return fmt.Errorf("building eigenhead: %w: %s", err, out)
		}
	}
	sync, err := fsyncTime(dir)
	if err != nil {
		return err
	}
	fmt.Printf("%d cores, %s/%s, %s; a file of 64 KiB is made durable in %.1f ms here\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), sync.Seconds()*1000)
	if err := sustained(binary, filepath.Join(dir, "sustained"), length); err != nil {
		return err
	}
	return flood(binary, filepath.Join(dir, "flood"), length)
}

// sustained lets 8 clients send as fast as they are answered, then waits for the rest
// of the measures.
func sustained(binary, dir string, length time.Duration) error {
	s, err := serve(binary, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	l := &load{url: s.url, clients: 8}
	l.run(length)
	busy := s.cpu()
	left, err := s.waiting()
	if err != nil {
		return err
	}
	measured := len(l.latencies) - left
	fmt.Printf("8 clients, as fast as they are answered, for %v:\n", length)
	fmt.Printf("  acknowledged durably   %8.0f captures/s   (target %d)\n", l.rate(length), target)
	fmt.Printf("  time to the answer     %8.1f ms median, %.1f ms for 99 of 100\n", l.quantile(0.5), l.quantile(0.99))
	fmt.Printf("  refused for now (429)  %8d\n", l.busy)
	fmt.Printf("  measured meanwhile     %8.0f captures/s, %.0f heads/s\n", float64(measured)/length.Seconds(), heads*float64(measured)/length.Seconds())
	start := time.Now()
	for left > 0 {
		time.Sleep(50 * time.Millisecond)
		now, err := s.waiting()
		if err != nil {
			return err
		}
		if now == 0 {
			break
		}
		if time.Since(start) > 5*length { // enough for a rate
			left -= now
			break
		}
	}
	took := time.Since(start).Seconds()
	if left > 0 && took > 0.5 {
		fmt.Printf("  measured afterwards    %8.0f captures/s, %.0f heads/s (%d that were waiting)\n", float64(left)/took, heads*float64(left)/took, left)
		each := (s.cpu() - busy).Seconds() / float64(left)
		taking := (busy.Seconds() - each*float64(measured)) / float64(len(l.latencies))
		fmt.Printf("  processor time         %8.1f ms to take a capture, %.1f ms to measure and keep it: what a busy machine does not change much\n", 1000*taking, 1000*each)
	}
	fmt.Printf("  peak memory            %8.0f MiB\n\n", s.peak())
	return nil
}

// flood offers ten times the target, in step with the clock, whether or not the
// answers come.
func flood(binary, dir string, length time.Duration) error {
	s, err := serve(binary, dir, "--queue", "2000", "--rate", "0")
	if err != nil {
		return err
	}
	defer s.stop()
	l := &load{url: s.url, clients: 256, pace: 10 * target}
	l.run(length)
	fmt.Printf("256 clients that offer %d captures a second for %v, a queue of 2000:\n", 10*target, length)
	fmt.Printf("  offered                %8.0f captures/s\n", float64(l.sent)/length.Seconds())
	fmt.Printf("  acknowledged durably   %8.0f captures/s\n", l.rate(length))
	fmt.Printf("  refused for now (429)  %8.0f captures/s\n", float64(l.busy)/length.Seconds())
	fmt.Printf("  other answers          %8d, no answer %d\n", l.other, l.lost)
	fmt.Printf("  peak memory            %8.0f MiB\n", s.peak())
	return nil
}

// server is an eigenhead process.
type server struct {
	cmd *exec.Cmd
	url string
}

func serve(binary, dir string, more ...string) (*server, error) {
	cmd := exec.Command(binary, append([]string{"serve", "--data", dir, "--listen", "127.0.0.1:0", "--no-auth", "--log-level", "error"}, more...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		return nil, fmt.Errorf("the server printed no URL: %w", cmd.Wait())
	}
	return &server{cmd, lines.Text()}, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// waiting is how many captures have no measures yet.
func (s *server) waiting() (int, error) {
	v, err := metric(s.url, "eigenhead_queue_length")
	return int(v), err
}

// peak is the largest resident memory of the process so far, in MiB; NaN where the
// system does not say.
func (s *server) peak() float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
			if err == nil {
				return kib / 1024
			}
		}
	}
	return nan
}

// cpu is the processor time that the process has used, user and system; 0 where the
// system does not say.
func (s *server) cpu() time.Duration {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11]) // in hundredths of a second
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// fsyncTime is the median time of making a file of 64 KiB durable.
func fsyncTime(dir string) (time.Duration, error) {
	var times []time.Duration
	data := make([]byte, 64<<10)
	for i := range 21 {
		start := time.Now()
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("sync", i)))
		if err != nil {
			return 0, err
		}
		_, err = f.Write(data)
		if err == nil {
			err = f.Sync()
		}
		if err2 := f.Close(); err == nil {
			err = err2
		}
		if err != nil {
			return 0, err
		}
		times = append(times, time.Since(start))
	}
	return middle(times), nil
}
