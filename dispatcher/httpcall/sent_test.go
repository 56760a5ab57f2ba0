package httpcall

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// H1, H6: what goes over the wire, byte for byte.
func TestRequestOnTheWire(t *testing.T) {
	const body = `{"amount":5}`
	got := make(chan string, 1)
	s := serve(t, func(_ *service, c *net.TCPConn) {
		var text strings.Builder
		for b := make([]byte, 1); !strings.HasSuffix(text.String(), body); text.Write(b) {
			if _, err := c.Read(b); err != nil {
				return
			}
		}
		got <- text.String()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	call := post(s.url() + "?a=b%20c")
	call.Header = append(call.Header, [2]string{"x-trace", "1"}, [2]string{"X-Trace", "2"})
	want(t, do(t, call, ample()), Answered, "")
	expected := strings.Join([]string{
		"POST /charges?a=b%20c HTTP/1.1", "Host: " + s.listener.Addr().String(), "User-Agent: effectd",
		"Connection: close", "Content-Length: 12", "Accept-Encoding: identity", "Content-Type: application/json",
		"Idempotency-Key: ek_1", "X-Trace: 1", "X-Trace: 2", "", body}, "\r\n")
	if text := <-got; text != expected {
		t.Fatalf("got\n%s\nwant\n%s", text, expected)
	}
}

// H1: Go's own client sends this request twice, because the key makes it replayable.
func TestClosedWithoutAnswerIsSentOnce(t *testing.T) {
	s := serve(t, func(s *service, c *net.TCPConn) { s.request(c) })
	for range 3 { // a pool would reuse a connection from the second call on
		want(t, do(t, post(s.url()), ample()), Lost, "response_lost")
	}
	if r, c := s.requests.Load(), s.connections(); r != 3 || c != 3 {
		t.Fatalf("3 calls made %d requests on %d connections", r, c)
	}
}

// H1: connections are not reused, though the service would keep them.
func TestKeepAliveIsNotUsed(t *testing.T) {
	s := serve(t, func(s *service, c *net.TCPConn) {
		for s.request(c) != nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	for range 3 {
		want(t, do(t, post(s.url()), ample()), Answered, "")
	}
	if r, c := s.requests.Load(), s.connections(); r != 3 || c != 3 {
		t.Fatalf("3 calls made %d requests on %d connections", r, c)
	}
}

// H6: a redirect is an answer.
func TestRedirectIsNotFollowed(t *testing.T) {
	other := serve(t, closing("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	s := serve(t, closing("HTTP/1.1 307 Temporary Redirect\r\nLocation: "+other.url()+"\r\nContent-Length: 0\r\n\r\n"))
	got := do(t, post(s.url()), ample())
	want(t, got, Answered, "")
	if got.Status != 307 || got.Headers["location"] != other.url() || other.connections() != 0 || s.requests.Load() != 1 {
		t.Fatalf("status %d, %d requests", got.Status, s.requests.Load())
	}
}

// H6: no proxy from the environment. 0.0.0.0 reaches the loopback service, but
// is not exempt from proxies as 127.0.0.1 is.
func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	proxy := serve(t, closing("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"))
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://"+proxy.listener.Addr().String())
	}
	s := serve(t, closing("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	got := do(t, post(strings.Replace(s.url(), "127.0.0.1", "0.0.0.0", 1)), ample())
	want(t, got, Answered, "")
	if got.Status != 200 || proxy.connections() != 0 {
		t.Fatalf("status %d by way of the proxy", got.Status)
	}
}

// H3: nothing listens.
func TestRefusedPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	got := do(t, post("http://"+listener.Addr().String()), ample())
	want(t, got, NotSent, "not_sent")
	if !strings.Contains(got.Detail, "refused") {
		t.Fatal(got.Detail)
	}
}

func tlsService(t *testing.T) (*httptest.Server, *atomic.Int64) {
	var requests atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, r.Proto)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = discard
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, &requests
}

// H3: a certificate that does not verify stops the call before the request.
func TestTLS(t *testing.T) {
	s, requests := tlsService(t)
	trusting := ample()
	trusting.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	want(t, do(t, post(s.URL), ample()), NotSent, "not_sent")
	want(t, do(t, post(strings.Replace(s.URL, "127.0.0.1", "localhost", 1)), trusting), NotSent, "not_sent")
	if n := requests.Load(); n != 0 {
		t.Fatalf("%d requests in spite of the certificate", n)
	}
	got := do(t, post(s.URL), trusting)
	want(t, got, Answered, "")
	if string(got.Body) != "HTTP/1.1" || requests.Load() != 1 {
		t.Fatalf("%s, %d requests", got.Body, requests.Load())
	}
	if plain := do(t, post(strings.Replace(s.URL, "https", "http", 1)), ample()); plain.Sent == NotSent {
		t.Fatal("plain text sent to a TLS port left nevertheless")
	}
}

// H2, H3: under TLS the handshake bytes are not the request.
func TestDeadlineAfterTheHandshake(t *testing.T) {
	s, requests := tlsService(t)
	opts := ample()
	opts.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	opts.Now = secondReading(func() time.Time { return opts.Deadline })
	want(t, do(t, post(s.URL), opts), NotSent, "not_sent")
	if n := requests.Load(); n != 0 {
		t.Fatalf("%d requests after the deadline", n)
	}
}

// H3: a handshake that never ends.
func TestDeadlineInTheHandshake(t *testing.T) {
	s := serve(t, (*service).drainTCP)
	want(t, do(t, post(strings.Replace(s.url(), "http", "https", 1)), within(50*time.Millisecond)), NotSent, "not_sent")
}

// H3: not buildable, and the fault is named without its value.
func TestNotBuildable(t *testing.T) {
	header := func(name, value string) Call {
		return Call{Method: "POST", URL: "http://127.0.0.1:1/", Header: [][2]string{{name, value}}}
	}
	for name, call := range map[string]Call{
		"method":         {Method: "PO ST", URL: "http://127.0.0.1:1/"},
		"connect":        {Method: "CONNECT", URL: "http://127.0.0.1:1/"},
		"no method":      {URL: "http://127.0.0.1:1/"},
		"scheme":         {Method: "GET", URL: "ftp://127.0.0.1/hush"},
		"relative":       {Method: "GET", URL: "/hush"},
		"user":           {Method: "GET", URL: "http://hush:hush@127.0.0.1:1/"},
		"parse":          {Method: "GET", URL: "http://127.0.0.1:1/%zzhush"},
		"split":          {Method: "GET", URL: "http://127.0.0.1:1/?a=hush HTTP/1.1"},
		"line end":       {Method: "GET", URL: "http://127.0.0.1:1/?a=hush\r\nX: y"},
		"header name":    header("hush hush", "x"),
		"header value":   header("X-A", "hush\r\nX-B: y"),
		"framing":        header("content-length", "hush"),
		"chunked":        header("Transfer-Encoding", "hush"),
		"expect":         header("Expect", "100-continue"),
		"host":           header("Host", "hush"),
		"unicode host":   {Method: "GET", URL: "http://hush\u00e9.test/"},
		"empty":          {},
		"header without": {Method: "GET", URL: "http://127.0.0.1:1/", Header: [][2]string{{"", "hush"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := do(t, call, ample())
			want(t, got, NotSent, "not_sent")
			if strings.Contains(got.Detail, "hush") || strings.Contains(got.Detail, "refused") || call.Validate() == nil {
				t.Fatal(got.Detail)
			}
		})
	}
	if err := post("https://service.test/charges").Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestOptionsWithoutAClock(t *testing.T) {
	got := do(t, post("http://127.0.0.1:1/"), Options{Deadline: time.Now().Add(time.Hour), MaxBody: -1})
	want(t, got, NotSent, "not_sent")
	if !strings.Contains(got.Detail, "now:") || !strings.Contains(got.Detail, "max_body:") {
		t.Fatalf("not every fault is named: %s", got.Detail)
	}
}
