package httpcall

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
)

// fault is an answer that was read but cannot be accepted.
type fault string

func (f fault) Error() string { return string(f) }

const (
	errMalformed fault = "the response is not well-formed HTTP/1.x"
	errHeadSize  fault = "the response head is above its bound"
	errBodySize  fault = "the response body is above its bound"
	errGarbage   fault = "bytes follow the end of the response"
)

// errEnded: the connection ended before the response was complete.
var errEnded = errors.New("the connection ended before the response was complete")

// errEarly: the service ended its side before the request was begun.
var errEarly = errors.New("the service answered or left before the first byte")

// bounded reads at most left bytes and remembers how the connection failed.
type bounded struct {
	r      io.Reader
	left   int64
	failed error // of the connection
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errHeadSize
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil {
		b.failed = err
	}
	return n, err
}

// receive reads one complete final response. The status is returned as soon as
// the head is known, also beside an error.
func receive(conn io.Reader, method string, opts Options) (Answer, error) {
	in := &bounded{r: conn, left: opts.MaxHead}
	buffer := bufio.NewReader(in)
	response, err := head(buffer, method)
	if err != nil {
		return Answer{}, explain(in, err)
	}
	answer := Answer{Status: response.StatusCode}
	in.left = math.MaxInt64
	body, err := io.ReadAll(io.LimitReader(response.Body, opts.MaxBody+1))
	switch {
	case int64(len(body)) > opts.MaxBody:
		return answer, errBodySize
	case err != nil:
		return answer, explain(in, err)
	case buffer.Buffered() > 0:
		return answer, errGarbage
	}
	answer.Sent, answer.Headers, answer.Body = Answered, headers(response.Header), body
	return answer, nil
}

// head reads past informational responses to the head of the final one.
func head(buffer *bufio.Reader, method string) (*http.Response, error) {
	for {
		response, err := http.ReadResponse(buffer, &http.Request{Method: method})
		if err != nil {
			return nil, err
		}
		code := response.StatusCode
		if response.ProtoMajor != 1 || code < 100 || code == http.StatusSwitchingProtocols {
			return nil, errMalformed
		}
		if code >= 200 {
			return response, nil
		}
	}
}

// explain says whether the connection or the response failed. Errors of the
// parser repeat the input, so they are replaced.
func explain(in *bounded, err error) error {
	var f fault
	switch {
	case errors.As(err, &f):
		return f
	case in.failed == nil:
		return errMalformed
	case errors.Is(in.failed, io.EOF):
		return errEnded
	default:
		return fmt.Errorf("read the response: %w", in.failed)
	}
}

func headers(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		out[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
	}
	return out
}
