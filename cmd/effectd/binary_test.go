package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "effectd-test-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "effectd")
	os.Unsetenv("EFFECTD_DATA")
	out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput()
	code := 1
	if err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// longest is what any wait of these tests may take before it is a failure.
const longest = 60 * time.Second

// ran is how a command ended.
type ran struct {
	code     int
	out, err string
}

// effectd runs the program to its end.
func effectd(t *testing.T, args ...string) ran {
	t.Helper()
	return effectdWith(t, "", args...)
}

func effectdWith(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	var out, errs bytes.Buffer
	c := exec.CommandContext(ctx, binary, args...)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &errs
	err := c.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) || ctx.Err() != nil {
		t.Fatalf("effectd %s: %v\n%s", strings.Join(args, " "), err, &errs)
	}
	return ran{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// want checks the exit code.
func (r ran) want(t *testing.T, code int) ran {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.out, r.err)
	}
	return r
}

// says checks that standard error has all the words.
func (r ran) says(t *testing.T, words ...string) ran {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(r.err, w) {
			t.Errorf("stderr does not say %q: %s", w, r.err)
		}
	}
	return r
}

// object decodes the one line of JSON on standard output.
func object[T any](t *testing.T, r ran) T {
	t.Helper()
	var v T
	if strings.Count(r.out, "\n") != 1 {
		t.Fatalf("want one line, got %q (stderr %s)", r.out, r.err)
	}
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("%v: %s", err, r.out)
	}
	return v
}

// ledgerDir is a fresh ledger.
func ledgerDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	effectd(t, "init", "--data", dir).want(t, 0)
	return dir
}

// served is a running "effectd serve".
type served struct {
	cmd   *exec.Cmd
	first string // the line on standard output that says so
	errs  *bytes.Buffer
	ended chan error
}

// serve starts a node on a free port and waits until it serves.
func serve(t *testing.T, dir string, args ...string) *served {
	t.Helper()
	return start(t, exec.Command(binary, append([]string{"serve", "--data", dir, "--listen", "127.0.0.1:0", "--json"}, args...)...))
}

// start runs a process that prints a line when it serves.
func start(t *testing.T, cmd *exec.Cmd) *served {
	t.Helper()
	return startUntil(t, cmd, "")
}

// startUntil runs a process that prints a line with these words when it serves.
func startUntil(t *testing.T, cmd *exec.Cmd, words string) *served {
	t.Helper()
	s := &served{cmd: cmd, errs: &bytes.Buffer{}, ended: make(chan error, 1)}
	cmd.Stderr = s.errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	line := make(chan string, 1)
	go func() {
		for lines.Scan() {
			if strings.Contains(lines.Text(), words) {
				line <- lines.Text()
				break
			}
		}
		close(line)
		for lines.Scan() {
		}
		s.ended <- cmd.Wait()
	}()
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	select {
	case text, ok := <-line:
		if !ok {
			t.Fatalf("it ended before it served: %v\n%s", <-s.ended, s.errs)
		}
		s.first = text
	case <-time.After(longest):
		t.Fatal("it does not serve")
	}
	return s
}

// signal sends a signal and waits for the end; it returns the exit code.
func (s *served) signal(t *testing.T, sig syscall.Signal) int {
	t.Helper()
	if err := syscall.Kill(s.cmd.Process.Pid, sig); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(longest):
		t.Fatalf("it does not stop\n%s", s.errs)
	}
	return s.cmd.ProcessState.ExitCode()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
