package httpcall

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a raw TCP server that counts what reaches it.
type service struct {
	t        *testing.T
	listener net.Listener
	requests atomic.Int64 // heads read by request
	bytes    atomic.Int64 // read by drain
	done     chan struct{}

	mu    sync.Mutex
	peers []string      // remote addresses, in the order of arrival
	seen  chan struct{} // closed and replaced at each arrival
	open  sync.WaitGroup
}

// serve runs handle for each connection until the test ends.
func serve(t *testing.T, handle func(s *service, c *net.TCPConn)) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, listener: listener, done: make(chan struct{}), seen: make(chan struct{})}
	s.open.Add(1)
	go func() {
		defer s.open.Done()
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			s.arrived(c.RemoteAddr().String())
			s.open.Add(1)
			go func() {
				defer s.open.Done()
				defer c.Close()
				handle(s, c.(*net.TCPConn))
			}()
		}
	}()
	t.Cleanup(func() { close(s.done); listener.Close(); s.open.Wait() })
	return s
}

func (s *service) arrived(peer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = append(s.peers, peer)
	close(s.seen)
	s.seen = make(chan struct{})
}

// connections counts what has come so far. Connections are accepted in their
// order, so one of our own that was accepted proves that all before it were.
func (s *service) connections() int {
	s.t.Helper()
	own, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	defer own.Close()
	for {
		s.mu.Lock()
		i, seen := slices.Index(s.peers, own.LocalAddr().String()), s.seen
		s.mu.Unlock()
		if i >= 0 {
			return i
		}
		<-seen
	}
}

func (s *service) url() string { return "http://" + s.listener.Addr().String() + "/charges" }

// request reads one request whole; nil when the connection ended.
func (s *service) request(c net.Conn) *http.Request {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return nil
	}
	s.requests.Add(1)
	_, _ = io.Copy(io.Discard, r.Body)
	return r
}

// drain reads until the connection ends, counting bytes.
func (s *service) drain(c net.Conn) {
	n, _ := io.Copy(io.Discard, c)
	s.bytes.Add(n)
}

// reset closes the connection with RST.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// answering replies text to each request, and keeps the connection open.
func answering(text string) func(*service, *net.TCPConn) {
	return func(s *service, c *net.TCPConn) {
		if s.request(c) != nil {
			_, _ = io.WriteString(c, text)
			s.drain(c)
		}
	}
}

// closing replies text to each request and ends the connection in order.
func closing(text string) func(*service, *net.TCPConn) {
	return func(s *service, c *net.TCPConn) {
		if s.request(c) != nil {
			_, _ = io.WriteString(c, text)
		}
	}
}

func within(d time.Duration) Options { return Options{Now: time.Now, Deadline: time.Now().Add(d)} }

func ample() Options { return within(15 * time.Second) }

func post(url string) Call {
	return Call{Method: "POST", URL: url, Body: []byte(`{"amount":5}`),
		Header: [][2]string{{"Content-Type", "application/json"}, {"Idempotency-Key", "ek_1"}}}
}

func do(t *testing.T, call Call, opts Options) Answer {
	t.Helper()
	return doUnder(t, context.Background(), call, opts)
}

// doUnder also checks that the call waited for an ample deadline in no case.
func doUnder(t *testing.T, ctx context.Context, call Call, opts Options) Answer {
	t.Helper()
	ample := time.Until(opts.Deadline) > 10*time.Second
	got := Do(ctx, call, opts)
	if ample && !time.Now().Before(opts.Deadline) {
		t.Fatalf("waited for the deadline, then said %v %q (%s)", got.Sent, got.Reason, got.Detail)
	}
	return got
}

func want(t *testing.T, got Answer, sent Sent, reason string) {
	t.Helper()
	if got.Sent != sent || string(got.Reason) != reason {
		t.Fatalf("got %v %q (status %d: %s), want %v %q", got.Sent, got.Reason, got.Status, got.Detail, sent, reason)
	}
	if (sent == Answered) != (got.Detail == "") {
		t.Fatalf("%v with detail %q", sent, got.Detail)
	}
	if sent != Answered && (got.Body != nil || got.Headers != nil) {
		t.Fatalf("%v carries an answer", sent)
	}
}

// secondReading is a clock whose second reading, the one before the first byte,
// runs at first; the readings are real unless it returns another time.
func secondReading(at func() time.Time) func() time.Time {
	var n atomic.Int64
	return func() time.Time {
		if n.Add(1) == 2 {
			return at()
		}
		return time.Now()
	}
}
