package httpcall

import (
	"crypto/x509"
	"errors"
	"time"

	"github.com/effectd/effectd/events"
)

// Call is one request. URL is absolute, http or https, without user information.
type Call struct {
	Method string
	URL    string
	Header [][2]string // name and value, in the order of the contract
	Body   []byte      // not retained
}

// Sent says what is proven about the request. The zero value proves nothing.
type Sent int

// What can be proven.
const (
	Lost     Sent = iota // possibly sent, and no complete answer
	NotSent              // no byte of the request left
	Answered             // a complete response was read
)

func (s Sent) String() string {
	switch s {
	case NotSent:
		return "not sent"
	case Answered:
		return "answered"
	default:
		return "lost"
	}
}

// Answer is how a call ended.
type Answer struct {
	Sent Sent
	// Status is the final status code. With Lost it is what the head said before
	// the rest was lost, or 0: it proves nothing.
	Status  int
	Headers map[string]string // names in lower case, repeated fields joined by ", "; Answered only
	Body    []byte            // as the service encoded it; Answered only
	Reason  events.Reason     // not_sent, or why it is lost; empty when answered
	Detail  string            // the fault in words
}

// Options bound a call.
type Options struct {
	// Deadline ends the call. It must come from Now, so that it carries a
	// monotonic reading. The zero Deadline is over.
	Deadline time.Time
	// Now is the clock that is read before the first byte.
	Now func() time.Time
	// RootCAs verify the service; nil means the roots of the system. See [Roots].
	RootCAs *x509.CertPool
	// Shutdown is the cause of cancellation (context.Cause) that makes a lost call
	// unknown(shutdown).
	Shutdown error
	// MaxHead bounds all response heads together, in bytes; 0 means 64 KiB.
	MaxHead int64
	// MaxBody bounds the response body, in bytes; 0 means 1 MiB.
	MaxBody int64
}

// The default bounds of a response.
const (
	DefaultMaxHead = 64 << 10
	DefaultMaxBody = 1 << 20
)

// Validate reports every fault of the options.
func (o Options) Validate() error {
	var faults []error
	if o.Now == nil {
		faults = append(faults, errors.New("now: a clock is required"))
	}
	if o.MaxHead < 0 {
		faults = append(faults, errors.New("max_head: negative"))
	}
	if o.MaxBody < 0 {
		faults = append(faults, errors.New("max_body: negative"))
	}
	return errors.Join(faults...)
}

func (o Options) withDefaults() Options {
	if o.MaxHead == 0 {
		o.MaxHead = DefaultMaxHead
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	return o
}
