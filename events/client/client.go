package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// Patience is how long a call without a deadline waits, beyond the time that
// the request itself gives the ledger.
const Patience = 30 * time.Second

// Errors of a call that no ledger answered.
var (
	// ErrUnreachable: no ledger could be asked. Without [ErrNoAnswer] nothing happened.
	ErrUnreachable = errors.New("ledger unreachable")
	// ErrNoAnswer: the request was sent and may have been served.
	ErrNoAnswer = fmt.Errorf("%w: no answer", ErrUnreachable)
	// ErrDenied: the NATS server does not let this principal do that.
	ErrDenied = errors.New("denied by the NATS server")
)

// Client is a connection of one principal. It is safe for concurrent use.
type Client struct {
	conn      *nats.Conn
	tenant    events.Tenant
	principal events.Principal

	mu    sync.Mutex
	calls map[*call]struct{}
}

// call is a request in flight.
type call struct {
	subject string
	cancel  context.CancelCauseFunc
}

// Dial connects as a principal with the nkey seed in a file; an empty name
// connects without one.
func Dial(url, seedFile string, t events.Tenant, p events.Principal, opts ...nats.Option) (*Client, error) {
	c := &Client{tenant: t, principal: p, calls: map[*call]struct{}{}}
	all := []nats.Option{nats.Name("effectd client " + string(events.ActorOf(t, p))), nats.CustomInboxPrefix(wire.Inbox(t, p)), nats.ReconnectBufSize(-1)}
	if seedFile != "" {
		key, err := nats.NkeyOptionFromSeed(seedFile)
		if err != nil {
			return nil, fmt.Errorf("read nkey seed: %w", err)
		}
		all = append(all, key)
	}
	o := nats.GetDefaultOptions()
	o.Url = url
	for _, opt := range append(all, opts...) {
		if err := opt(&o); err != nil {
			return nil, fmt.Errorf("connection option: %w", err)
		}
	}
	next := o.AsyncErrorCB
	o.AsyncErrorCB = func(nc *nats.Conn, sub *nats.Subscription, err error) {
		c.denied(err)
		if next != nil {
			next(nc, sub, err)
		}
	}
	var err error
	if c.conn, err = o.Connect(); err != nil {
		if errors.Is(err, nats.ErrAuthorization) {
			return nil, fmt.Errorf("connect: %w: %w", ErrDenied, err)
		}
		return nil, fmt.Errorf("connect: %w: %w", ErrUnreachable, err)
	}
	return c, nil
}

// Conn is the connection, for subscriptions to what the principal may read.
func (c *Client) Conn() *nats.Conn { return c.conn }

// Close ends the connection; calls in flight end with [ErrNoAnswer].
func (c *Client) Close() { c.conn.Close() }

// denied ends the calls that the server did not let through: for them a denied
// publish, or a denied inbox, is silence.
func (c *Client) denied(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for open := range c.calls {
		if text := err.Error(); strings.Contains(text, `"`+open.subject+`"`) || strings.Contains(text, `"`+wire.Inbox(c.tenant, c.principal)) {
			open.cancel(ErrDenied)
		}
	}
}

// Call sends a request to a verb and decodes the reply. A refusal by the ledger
// is a [*wire.Error].
func Call[Req, Reply any](ctx context.Context, c *Client, verb wire.Verb, req Req) (Reply, error) {
	var reply Reply
	body, err := json.Marshal(req)
	if err != nil {
		return reply, fmt.Errorf("%s: encode request: %w", verb, err)
	}
	m, err := c.roundTrip(ctx, wire.APISubject(c.tenant, c.principal, verb), body, patienceFor(req))
	if err != nil {
		return reply, fmt.Errorf("%s: %w", verb, err)
	}
	if m.Header.Get(wire.HeaderErrorCode) != "" {
		return reply, refusalIn(m)
	}
	if err := json.Unmarshal(m.Data, &reply); err != nil {
		return reply, fmt.Errorf("%s: decode reply: %w", verb, err)
	}
	return reply, nil
}

func (c *Client) roundTrip(ctx context.Context, subject string, body []byte, patience time.Duration) (*nats.Msg, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, patience)
		defer stop()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	open := &call{subject, cancel}
	c.mu.Lock()
	c.calls[open] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, open)
		c.mu.Unlock()
	}()
	m, err := c.conn.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: body})
	if err != nil && errors.Is(context.Cause(ctx), ErrDenied) {
		return nil, fmt.Errorf("%w: %s may not publish on %s", ErrDenied, events.ActorOf(c.tenant, c.principal), subject)
	}
	return m, classOf(err)
}

// patienceFor is how long a reply may take: what the request asks for, and some.
func patienceFor(req any) time.Duration {
	var ms int64
	switch r := req.(type) {
	case wire.SubmitRequest:
		ms = r.TimeoutMS
	case wire.GetRequest:
		ms = r.TimeoutMS
	case wire.ReconcileRequest:
		ms = r.DeadlineMS
	}
	if ms < 0 || ms > wire.MaxMS/2 {
		ms = wire.MaxMS / 2
	}
	return Patience + time.Duration(ms)*time.Millisecond
}

// classOf puts an error of the connection in the class that the caller decides by.
func classOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("request too large: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrNoAnswer, err)
}

func refusalIn(m *nats.Msg) error {
	var body wire.ErrorReply
	if err := json.Unmarshal(m.Data, &body); err != nil || body.Error == nil {
		return wire.Errorf(wire.Code(m.Header.Get(wire.HeaderError)), "the ledger refused without saying why")
	}
	return body.Error
}
