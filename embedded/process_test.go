package embedded_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/events/client"
)

// built is the directory of the program under test; empty until a test needs it.
var built string

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(built)
	if err := goleak.Find(
		// What Pebble leaves behind when it could not open a store.
		goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"),
		goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.(*cleanupManager).mainLoop"),
	); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// program builds the program, once.
var program = sync.OnceValues(func() (string, error) {
	var err error
	if built, err = os.MkdirTemp("", "embedded-test-"); err != nil {
		return "", err
	}
	file := filepath.Join(built, "effectd")
	if out, err := exec.Command("go", "build", "-o", file, "../cmd/effectd").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return file, nil
})

// process is one life of "effectd serve".
type process struct {
	*exec.Cmd
	first chan string // its first line, closed after it or at the end
	over  chan struct{}
	errs  *bytes.Buffer // complete when it is over
	ready embedded.Ready
}

// launch starts the program on the data directory and does not wait.
func (r *rig) launch(args ...string) *process {
	r.Helper()
	file, err := program()
	if err != nil {
		r.Fatal(err)
	}
	p := &process{Cmd: exec.Command(file, append([]string{"serve", "--data", r.dir, "--listen", "127.0.0.1:0", "--json"}, args...)...),
		first: make(chan string, 1), over: make(chan struct{}), errs: &bytes.Buffer{}}
	p.Stderr = p.errs
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		r.Fatal(err)
	}
	go func() {
		defer close(p.over)
		lines := bufio.NewScanner(out)
		if lines.Scan() {
			p.first <- lines.Text()
		}
		close(p.first)
		for lines.Scan() {
		}
		_ = p.Wait()
	}()
	r.Cleanup(p.kill)
	return p
}

// serve starts the program and waits until it serves.
func (r *rig) serve(args ...string) *process {
	r.Helper()
	p := r.launch(args...)
	line := take(r, "the program serves", p.first)
	if line == "" {
		<-p.over
		r.Fatalf("it ended before it served\n%s", p.errs)
	}
	if err := json.Unmarshal([]byte(line), &p.ready); err != nil || !p.ready.Ready {
		r.Fatalf("%s: %v", line, err)
	}
	return p
}

// kill ends it without a chance to clean up.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.over
}

// terminate ends it gracefully.
func (p *process) terminate(t testing.TB) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.over:
	case <-time.After(patience):
		t.Fatal("it does not stop")
	}
	if code := p.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.errs)
	}
}

// as connects as a user of the tenant main.
func (p *process) as(t testing.TB, r *rig, who string) *client.Client {
	t.Helper()
	return dial(t, p.ready.NATSURL, r.dir, who)
}

// effectd runs another command of the program to its end.
func (r *rig) effectd(args ...string) (out string, code int) {
	r.Helper()
	file, err := program()
	if err != nil {
		r.Fatal(err)
	}
	cmd := exec.CommandContext(r.Context(), file, args...)
	b, _ := cmd.CombinedOutput()
	return string(b), cmd.ProcessState.ExitCode()
}
