package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// provenance are the fields of a request that are sealed with an effect.
type provenance struct {
	RunID       string  `name:"run-id" placeholder:"ID" help:"The invocation that the effect belongs to (default: a new one)."`
	CausalID    string  `name:"causal-id" placeholder:"ID" help:"The step of the run (default: a new one). The same run and causal id are the same effect, however often it is asked for."`
	Service     *string `placeholder:"NAME" help:"Sealed with the effect: the calling service."`
	Session     *string `placeholder:"ID" help:"Sealed with the effect: the session."`
	Process     *string `placeholder:"ID" help:"Sealed with the effect: the process."`
	HostBinding *string `name:"host-binding" placeholder:"DIGEST" help:"Sealed with the effect: an opaque digest of the host."`
}

func (p *provenance) sealed() wire.SealedContext {
	run, causal := events.RunID(p.RunID), events.CausalID(p.CausalID)
	return wire.SealedContext{RunID: &run, CausalID: &causal, Service: p.Service, Session: p.Session, Process: p.Process, HostBinding: p.HostBinding}
}

// wish is what an effect is asked with.
type wish struct {
	target
	provenance
	Task         string         `required:"" short:"t" placeholder:"ID" help:"The task whose budget pays."`
	Operation    string         `required:"" short:"o" placeholder:"NAME" help:"The registered operation."`
	Version      int64          `placeholder:"N" help:"Version of the operation (default: the newest)."`
	Precondition string         `placeholder:"JSON|@FILE" help:"What must hold when it is sent, for operations that support it."`
	MaxCost      events.Amounts `name:"max-cost" mapsep:"," placeholder:"UNIT=N" help:"The most it may cost; refused when the operation's bound is higher."`
	Expires      string         `placeholder:"10m|TIME" help:"When the binding ends. To repeat the request give the same time, not a length of time."`
	Payload      string         `arg:"" placeholder:"JSON|@FILE|-" help:"What the operation gets: JSON, @FILE, or - for standard input."`
}

// request reads the wish. Ids that are not given are made, and told before
// anything is sent: without them an unanswered request cannot be repeated.
func (w *wish) request(e *env) (wire.PrepareRequest, error) {
	r := wire.PrepareRequest{TaskID: events.TaskID(w.Task), Operation: events.OperationName(w.Operation), Version: w.Version, MaxCost: w.MaxCost}
	var err error
	if r.Payload, err = document(e.in, "payload", w.Payload); err != nil {
		return r, err
	}
	if w.Precondition != "" {
		if r.Precondition, err = document(e.in, "precondition", w.Precondition); err != nil {
			return r, err
		}
	}
	if r.ExpiresAt, err = moment("expires", w.Expires, e.now(), 1); err != nil {
		return r, err
	}
	if w.RunID == "" || w.CausalID == "" {
		w.RunID, w.CausalID = or(w.RunID, newID(e.now())), or(w.CausalID, newID(e.now()))
		e.note("to repeat this request: --run-id %s --causal-id %s", w.RunID, w.CausalID)
	}
	r.SealedContext = w.sealed()
	return r, nil
}

func newID(now time.Time) string { return ulid.MustNew(ulid.Timestamp(now), rand.Reader).String() }

// document reads JSON from the argument, @FILE or - for standard input.
func document(in io.Reader, what, text string) (events.Raw, error) {
	raw := []byte(text)
	var err error
	switch {
	case text == "-":
		raw, err = io.ReadAll(in)
	case strings.HasPrefix(text, "@"):
		raw, err = os.ReadFile(text[1:])
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	canonical, err := events.Canonicalize(raw)
	if err != nil {
		return nil, wire.FieldError(wire.InvalidPayload, what, err.Error())
	}
	return canonical, nil
}

// moment reads a time, or a length of time from now (sign 1) or before (−1), as
// the wire writes times. Empty stays empty.
func moment(flag, text string, now time.Time, sign time.Duration) (string, error) {
	if text == "" {
		return "", nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return events.InstantOf(now.Add(sign * d)).String(), nil
	}
	if _, err := events.ParseInstant(text); err != nil {
		return "", &usage{"--" + flag + ": " + err.Error() + ", or a length of time such as 10m", "for example --" + flag + " 1h"}
	}
	return text, nil
}

// submitCmd binds and admits an effect, and waits as asked.
type submitCmd struct {
	wish
	Wait    string        `enum:"none,admitted,terminal" default:"admitted" help:"Answer at once (none), when it is admitted, or when its end is known (terminal)."`
	Timeout time.Duration `placeholder:"4s" help:"How long to wait."`
	Queue   bool          `help:"Put it into the durable queue instead, and do not wait for a decision."`
}

// Run implements the command.
func (c *submitCmd) Run(e *env) error {
	r, err := c.request(e)
	if err != nil {
		return err
	}
	return c.call(e, events.RoleProducer, func(ctx context.Context, l *client.Client) error {
		if c.Queue {
			return c.queue(ctx, e, l, r)
		}
		x, err := l.Submit(ctx, wire.SubmitRequest{PrepareRequest: r, Wait: c.Wait, TimeoutMS: c.Timeout.Milliseconds()})
		return e.effect(&x, changed(err), true)
	})
}

// queue leaves the request where it survives until the ledger decides it.
func (c *submitCmd) queue(ctx context.Context, e *env, l *client.Client, r wire.PrepareRequest) error {
	q, err := l.Queue(ctx, wire.SubmitRequest{PrepareRequest: r})
	if errors.Is(err, client.ErrNoIntake) {
		return hint(err, "effectd doctor says why; without --queue it is asked at once")
	}
	if err != nil {
		return changed(err)
	}
	e.show(q, func(p *page) { p.field("queued", "request "+strconv.FormatUint(q.Seq, 10)+" of "+q.Stream) })
	if !e.json {
		e.note("what became of it: effectd get --run-id %s --causal-id %s, or effectd denials", *r.RunID, *r.CausalID)
	}
	return nil
}

// prepareCmd binds an effect and holds it.
type prepareCmd struct{ wish }

// Run implements the command.
func (c *prepareCmd) Run(e *env) error {
	r, err := c.request(e)
	if err != nil {
		return err
	}
	return c.call(e, events.RoleProducer, func(ctx context.Context, l *client.Client) error {
		x, err := l.Prepare(ctx, r)
		if err = e.effect(&x, changed(err), false); err == nil && !e.json && !x.State.Terminal() {
			e.note("to go on: effectd admit %s", x.EffectID)
		}
		return err
	})
}

// effect prints the effect that a request answered with. awaited says that the
// exit code speaks of its outcome.
func (e *env) effect(x *wire.Effect, err error, awaited bool) error {
	if err != nil {
		return err
	}
	e.show(x, func(p *page) { effectPage(p, x, e.now()) })
	if awaited {
		return proven(x)
	}
	return nil
}
