package eventlog

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/effectd/effectd/events/wire"
)

const (
	envStore = "EVENTLOG_TEST_STORE"
	envPort  = "EVENTLOG_TEST_PORT"
)

func TestMain(m *testing.M) {
	if store := os.Getenv(envStore); store != "" {
		serveUntilKilled(store, os.Getenv(envPort))
	}
	goleak.VerifyTestMain(m)
}

// serveUntilKilled is a server in a process of its own, so that it can be
// killed without a chance to clean up.
func serveUntilKilled(store, port string) {
	n, _ := strconv.Atoi(port)
	srv, err := newServer(store, n)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(srv.ClientURL())
	select {}
}

func newServer(store string, port int, users ...*server.User) (*server.Server, error) {
	srv, err := server.NewServer(&server.Options{
		ServerName: "test", Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: store, SyncAlways: true,
		NoSigs: true, NoLog: true, JetStreamMaxStore: 4 << 30, JetStreamMaxMemory: 64 << 20, Users: users,
	})
	if err != nil {
		return nil, err
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		return nil, fmt.Errorf("server is not ready")
	}
	return srv, nil
}

// startServer runs a server with fsync on every message until the test ends.
func startServer(t testing.TB, store string, users ...*server.User) *server.Server {
	t.Helper()
	srv, err := newServer(store, -1, users...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopServer(srv) })
	return srv
}

func stopServer(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}

// connect opens a connection as the log wants it.
func connect(t testing.TB, url string, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url, append(options, nats.ReconnectBufSize(-1), nats.MaxReconnects(-1),
		nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func create(t testing.TB, url string, cfg Config) *Stream {
	t.Helper()
	s, err := Create(testContext(t), connect(t, url), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testContext ends a test that would hang.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// child is a server process.
type child struct {
	url string
	cmd *exec.Cmd
}

func startChild(t *testing.T, store string, port int) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0], "-test.run=^$")}
	c.cmd.Env = append(os.Environ(), envStore+"="+store, envPort+"="+strconv.Itoa(port))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c.url = strings.TrimSpace(line)
	return c
}

func (c *child) port(t *testing.T) int {
	n, err := strconv.Atoi(c.url[strings.LastIndex(c.url, ":")+1:])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// messageDir is where a server keeps the messages of the log.
func messageDir(store string) string {
	return filepath.Join(store, "jetstream", "$G", "streams", wire.LogStream, "msgs")
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// await polls, for what servers do not announce.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx := testContext(t)
	for !holds() {
		if sleep(ctx, 10*time.Millisecond) != nil {
			t.Fatal("no ", what)
		}
	}
}
