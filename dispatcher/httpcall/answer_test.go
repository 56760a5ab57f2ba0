package httpcall

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// H4: complete answers of every kind.
func TestAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		status int
		body   string
	}{
		"length":          {ok, 200, "ok"},
		"chunked":         {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", 201, "ok"},
		"trailer":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n", 200, "ok"},
		"no content":      {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
		"unauthorized":    {"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n", 401, ""},
		"server error":    {"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops", 500, "oops"},
		"informational":   {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok, 200, "ok"},
		"not unpacked":    {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b", 200, "\x1f\x8b"},
		"old":             {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
		"no reason given": {"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answering(c.text))
			got := do(t, post(s.url()), ample())
			want(t, got, Answered, "")
			if got.Status != c.status || string(got.Body) != c.body || s.requests.Load() != 1 {
				t.Fatalf("status %d, body %q, %d requests", got.Status, got.Body, s.requests.Load())
			}
		})
	}
}

// H4: the end of the connection in order delimits a body; a reset does not.
func TestBodyUntilTheEnd(t *testing.T) {
	const text = "HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\n\r\nok"
	s := serve(t, closing(text))
	got := do(t, post(s.url()), ample())
	want(t, got, Answered, "")
	if string(got.Body) != "ok" || got.Headers["x-a"] != "1, 2" {
		t.Fatalf("%+v", got)
	}
	s = serve(t, func(s *service, c *net.TCPConn) {
		s.request(c)
		_, _ = io.WriteString(c, text)
		reset(c)
	})
	want(t, do(t, post(s.url()), ample()), Lost, "response_lost")
}

// H4: what was answered, but cannot be accepted.
func TestNotAccepted(t *testing.T) {
	for name, c := range map[string]struct{ text, reason string }{
		"garbage":          {"hush hush\r\n\r\n", "adapter_error"},
		"other protocol":   {"SSH-2.0-OpenSSH_9.9 hush\r\n", "adapter_error"},
		"version 2":        {"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "adapter_error"},
		"status":           {"HTTP/1.1 2000 OK\r\n\r\n", "adapter_error"},
		"status 000":       {"HTTP/1.1 000 OK\r\n\r\n", "adapter_error"},
		"upgrade":          {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + ok, "adapter_error"},
		"two lengths":      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhush", "adapter_error"},
		"bad length":       {"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nhush", "adapter_error"},
		"bad coding":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: hush\r\n\r\nhush", "adapter_error"},
		"bad chunk":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhush\r\n", "adapter_error"},
		"bad header":       {"HTTP/1.1 200 OK\r\nhush\r\n\r\n", "adapter_error"},
		"trailing garbage": {ok + "hush", "adapter_error"},
		"second response":  {ok + ok, "adapter_error"},
		"huge head":        {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", DefaultMaxHead) + "\r\n\r\n", "adapter_error"},
		"endless 1xx":      {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", DefaultMaxHead/28+1), "adapter_error"},
		"huge body":        {fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", DefaultMaxBody+1, make([]byte, DefaultMaxBody+1)), "adapter_error"},
		"huge chunks":      {fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", DefaultMaxBody+1, make([]byte, DefaultMaxBody+1)), "adapter_error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answering(c.text)) // the connection stays: nothing here waits for its end
			got := do(t, post(s.url()), ample())
			want(t, got, Lost, c.reason)
			if strings.Contains(got.Detail, "hush") {
				t.Fatalf("the detail repeats the answer: %s", got.Detail)
			}
			if s.requests.Load() != 1 {
				t.Fatalf("%d requests", s.requests.Load())
			}
		})
	}
}

func TestBodyAtItsBound(t *testing.T) {
	large := serve(t, answering(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", DefaultMaxBody, make([]byte, DefaultMaxBody))))
	if got := do(t, post(large.url()), ample()); len(got.Body) != DefaultMaxBody {
		t.Fatalf("%v, %d bytes: %s", got.Sent, len(got.Body), got.Detail)
	}
	s := serve(t, answering(ok))
	opts := ample()
	opts.MaxBody = 2
	want(t, do(t, post(s.url()), opts), Answered, "")
	opts.MaxBody = 1
	want(t, do(t, post(s.url()), opts), Lost, "adapter_error")
}

// H4: no part of a delimited response is a response, however the reads fall.
func TestEveryPrefixIsLost(t *testing.T) {
	for _, text := range []string{
		ok,
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 402 No\r\nContent-Length: 3\r\nContent-Type: a/b\r\n\r\n{}\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
	} {
		for n := range len(text) + 1 {
			for _, in := range []io.Reader{strings.NewReader(text[:n]), iotest.OneByteReader(strings.NewReader(text[:n])), iotest.DataErrReader(strings.NewReader(text[:n]))} {
				got, err := receive(in, "POST", Options{}.withDefaults())
				if complete := n == len(text); (got.Sent == Answered) != complete || (err == nil) != complete {
					t.Fatalf("%d of %d bytes of %q: %v, %v", n, len(text), text, got.Sent, err)
				}
			}
		}
	}
}

// H4: the same over real connections, once for each kind of cut.
func TestCut(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":    "",
		"status":     "HTTP/1.1 20",
		"head":       "HTTP/1.1 200 OK\r\nContent-Le",
		"head ended": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
		"body":       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no",
		"chunk":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\no",
		"last chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
		"1xx alone":  "HTTP/1.1 100 Continue\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, closing(text))
			want(t, do(t, post(s.url()), ample()), Lost, "response_lost")
		})
	}
}

// H3: reset before the request. The kernel takes no byte for a dead connection.
func TestResetBeforeTheFirstByte(t *testing.T) {
	gone := make(chan struct{})
	s := serve(t, func(_ *service, c *net.TCPConn) { reset(c); close(gone) })
	opts := ample()
	opts.Now = secondReading(func() time.Time { <-gone; return time.Now() })
	want(t, do(t, post(s.url()), opts), NotSent, "not_sent")
}

// H3, H4: closed in order before the request. Either the end is seen first, and
// nothing is sent, or the kernel takes the request, and it is lost.
func TestClosedAfterAccept(t *testing.T) {
	gone := make(chan struct{})
	s := serve(t, func(_ *service, c *net.TCPConn) { c.Close(); close(gone) })
	opts := ample()
	opts.Now = secondReading(func() time.Time { <-gone; return time.Now() })
	if got := do(t, post(s.url()), opts); got.Sent == NotSent {
		want(t, got, NotSent, "not_sent")
		if got.Detail != errEarly.Error() {
			t.Fatal(got.Detail)
		}
	} else {
		want(t, got, Lost, "response_lost")
	}
}

// H3: an answer that nobody asked for does not prove that the request was sent.
func TestAnswerWithoutARequest(t *testing.T) {
	gone := make(chan struct{})
	s := serve(t, func(_ *service, c *net.TCPConn) { _, _ = io.WriteString(c, ok); c.Close(); close(gone) })
	opts := ample()
	opts.Now = secondReading(func() time.Time { <-gone; return opts.Deadline })
	want(t, do(t, post(s.url()), opts), NotSent, "not_sent")
}

// H4: reset after the request.
func TestResetAfterTheRequest(t *testing.T) {
	s := serve(t, func(s *service, c *net.TCPConn) { s.request(c); reset(c) })
	want(t, do(t, post(s.url()), ample()), Lost, "response_lost")
}

// H4: reset while the request is being written.
func TestResetInTheRequest(t *testing.T) {
	s := serve(t, func(_ *service, c *net.TCPConn) {
		_, _ = io.ReadFull(c, make([]byte, 1))
		reset(c)
	})
	call := post(s.url())
	call.Body = make([]byte, 16<<20)
	want(t, do(t, call, ample()), Lost, "response_lost")
}

// H4: an answer that does not wait for the request is an answer.
func TestAnswerBeforeTheWholeRequest(t *testing.T) {
	s := serve(t, func(s *service, c *net.TCPConn) {
		_, _ = io.ReadFull(c, make([]byte, 1))
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
		<-s.done // neither reads nor closes
	})
	call := post(s.url())
	call.Body = make([]byte, 16<<20)
	got := do(t, call, ample())
	want(t, got, Answered, "")
	if got.Status != 413 {
		t.Fatalf("status %d", got.Status)
	}
}

// H4: the parser bears anything, and what it accepts is within the bounds.
func FuzzReceive(f *testing.F) {
	f.Add([]byte(ok))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n\r\nok"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := receive(bytes.NewReader(text), "POST", Options{MaxHead: 256, MaxBody: 64})
		if (got.Sent == Answered) != (err == nil) || len(got.Body) > 64 {
			t.Fatalf("%+v, %v", got, err)
		}
		if got.Sent == Answered && (got.Status < 200 || got.Status > 999) {
			t.Fatalf("status %d", got.Status)
		}
	})
}
