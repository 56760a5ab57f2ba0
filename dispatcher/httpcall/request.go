package httpcall

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// request is a call in the form in which it goes over the wire.
type request struct {
	method  string
	https   bool
	host    string // without port
	address string // host:port
	wire    []byte
}

// Validate reports why the call cannot be sent at all, without any value of it.
func (c Call) Validate() error {
	_, err := encode(c)
	return err
}

// encode builds the whole request before anything is dialled, so that whatever
// cannot be built was not sent.
func encode(c Call) (*request, error) {
	if !validToken(c.Method) || c.Method == http.MethodConnect {
		return nil, errors.New("method: not usable")
	}
	u, r, err := target(c.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	header, err := headerOf(c.Header)
	if err != nil {
		return nil, err
	}
	req := &http.Request{Method: c.Method, URL: u, Host: u.Host, Header: header, Close: true, Body: http.NoBody}
	if len(c.Body) > 0 {
		req.Body = readOnce{bytes.NewReader(c.Body)}
		req.ContentLength = int64(len(c.Body))
	}
	wire := bytes.NewBuffer(make([]byte, 0, len(c.Body)+len(c.URL)+1024))
	if err := req.Write(wire); err != nil {
		return nil, errors.New("request: not encodable")
	}
	r.method, r.wire = c.Method, wire.Bytes()
	return r, nil
}

func target(raw string) (*url.URL, *request, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, nil, errors.New("malformed") // url.Error repeats the input
	}
	r := &request{https: u.Scheme == "https", host: u.Hostname()}
	port := u.Port()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, nil, errors.New("scheme is not http or https")
	case u.User != nil:
		return nil, nil, errors.New("user information is not allowed")
	case r.host == "" || !visible(r.host):
		return nil, nil, errors.New("host is missing or not ASCII")
	case !visible(u.RequestURI()):
		return nil, nil, errors.New("path or query is not escaped")
	case port == "" && r.https:
		port = "443"
	case port == "":
		port = "80"
	}
	r.address = net.JoinHostPort(r.host, port)
	return u, r, nil
}

// reserved header fields frame or route the message: a contract may not set them.
var reserved = map[string]bool{
	"Connection": true, "Content-Length": true, "Expect": true, "Host": true, "Keep-Alive": true,
	"Proxy-Authorization": true, "Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

func headerOf(fields [][2]string) (http.Header, error) {
	header := http.Header{"User-Agent": {"effectd"}, "Accept-Encoding": {"identity"}}
	given := http.Header{}
	for _, field := range fields {
		name := http.CanonicalHeaderKey(field[0])
		switch {
		case !validToken(field[0]):
			return nil, errors.New("header: a name is malformed")
		case reserved[name]:
			return nil, fmt.Errorf("header %s: is not the contract's to set", name)
		case !validValue(field[1]):
			return nil, fmt.Errorf("header %s: the value has control characters", name)
		}
		given[name] = append(given[name], field[1])
	}
	for name, values := range given {
		header[name] = values
	}
	return header, nil
}

// readOnce hides the type of its reader: nothing can rewind it.
type readOnce struct{ r *bytes.Reader }

func (b readOnce) Read(p []byte) (int, error) { return b.r.Read(p) }
func (readOnce) Close() error                 { return nil }

// validToken reports whether s is a token of RFC 9110, 5.6.2.
func validToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// visible reports whether s is printable ASCII without spaces.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
