package main

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A killed node is at rest as soon as it holds nothing, though its process stays
// in the table until its parent asks for it.
func TestKilledNodeIsAtRest(t *testing.T) {
	dir := ledgerDir(t)
	cmd := exec.Command(binary, "serve", "--data", dir, "--listen", "127.0.0.1:0")
	out, in := io.Pipe()
	cmd.Stdout = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = in.Close(); _ = cmd.Wait() })
	if line := bufio.NewScanner(out); !line.Scan() {
		t.Fatal("it does not serve")
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(cmd.Process.Pid, 0); err != nil {
		t.Fatalf("not a zombie: %v", err)
	}
	effectd(t, "ledger", "status", "--data", dir).want(t, int(exitUnreachable)).says(t, "killed")
	if r := effectd(t, "doctor", "--data", dir); !strings.Contains(r.out, "the last one was killed") {
		t.Error(r.out)
	}
	if r := effectd(t, "verify", "--data", dir).want(t, 0); !strings.Contains(r.out, "Every rule holds") {
		t.Error(r.out)
	}
}
