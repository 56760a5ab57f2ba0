package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// block is a sh block of a document, with the mark before it:
// "<!-- test: skip reason -->", "<!-- test: background -->" or, if it serves only
// once it says certain words, "<!-- test: background until: words -->".
type block struct{ mark, text string }

var fenced = regexp.MustCompile("(?m)(?:^<!-- test: ([^>]*) -->\n)?^```sh\n((?s:.*?))^```$")

func blocksOf(text string) (out []block) {
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		out = append(out, block{m[1], m[2]})
	}
	return out
}

// Every command in the documents works as written, in order, in an empty directory.
func TestDocuments(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append([]string{"../../README.md"}, files...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			if strings.Contains(string(text), "\nnats-server ") {
				needNATSServer(t) // beside the binary
				text = bytes.ReplaceAll(text, []byte("4222"), []byte(freePort(t)))
			}
			dir := t.TempDir()
			for _, b := range blocksOf(string(text)) {
				b.run(t, dir)
			}
			if filepath.Base(file) == "README.md" {
				stockClient(t, dir, string(text))
			}
		})
	}
}

func (b block) run(t *testing.T, dir string) {
	t.Helper()
	if reason, skip := strings.CutPrefix(b.mark, "skip"); skip {
		t.Logf("not run, %s: %s", strings.TrimSpace(reason), strings.TrimSpace(b.text))
		return
	}
	cmd := exec.Command("sh", "-eu", "-c", b.text)
	kind, words, merged := strings.Cut(b.mark, " until: ")
	background := kind == "background"
	if background {
		cmd = exec.Command("sh", "-eu", "-c", "exec "+b.text)
	}
	if merged { // the words may be in its log
		cmd.Args[3] = "exec 2>&1; " + cmd.Args[3]
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "EFFECTD_LISTEN=127.0.0.1:0")
	if background {
		s := startUntil(t, cmd, words)
		t.Cleanup(func() {
			if code := s.signal(t, syscall.SIGTERM); code != 0 {
				t.Errorf("%s: exit code %d\n%s", b.text, code, s.errs)
			}
		})
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	stopped := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stopped()
	out, err := cmd.CombinedOutput()
	t.Logf("$ %s%s", b.text, out)
	if err != nil {
		t.Fatalf("%v:\n%s\n%s", err, b.text, out)
	}
}

// freePort is a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

var stockLine = regexp.MustCompile(`(?m)^nats --nkey (\S+) --inbox-prefix (\S+) req (\S+) '(.*)'$`)

// The line for the stock client works with any client that does what it says.
func stockClient(t *testing.T, dir, text string) {
	t.Helper()
	m := stockLine.FindStringSubmatch(text)
	if m == nil {
		t.Fatal("no line for the stock client")
	}
	var node running
	readJSON(t, filepath.Join(dir, "effectd-data", "node.json"), &node)
	key, err := nats.NkeyOptionFromSeed(filepath.Join(dir, m[1]))
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(node.NATSURL, key, nats.CustomInboxPrefix(m[2]))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	reply, err := nc.Request(m[3], []byte(m[4]), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(reply.Data, []byte(`"repeat":true`)) {
		t.Errorf("reply: %s", reply.Data)
	}
}
