package httpcall

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/effectd/effectd/events"
)

// Do sends the call once and says what is proven (H1 to H8). It returns by the
// deadline, or soon after ctx is cancelled.
func Do(ctx context.Context, call Call, opts Options) Answer {
	if err := opts.Validate(); err != nil {
		return notSent(err)
	}
	opts = opts.withDefaults()
	request, err := encode(call)
	if err != nil {
		return notSent(err)
	}
	if !opts.Now().Before(opts.Deadline) {
		return notSent(errDeadline)
	}
	ctx, cancel := context.WithDeadline(ctx, opts.Deadline)
	defer cancel()
	conn, err := dial(ctx, request, opts)
	if err != nil {
		return notSent(err)
	}
	answer, complete := exchange(ctx, conn, request, opts)
	conn.close(complete)
	return answer
}

// exchange writes the request and reads the answer at the same time, because a
// service may answer before it has read everything. complete reports that both
// came to their end.
func exchange(ctx context.Context, conn *connection, r *request, opts Options) (answer Answer, complete bool) {
	defer context.AfterFunc(ctx, conn.interrupt)()
	written := make(chan error, 1)
	go func() {
		err := conn.send(ctx, r.wire, opts)
		if !conn.began() {
			conn.interrupt() // there is nothing to wait for
		}
		written <- err
	}()
	answer, err := receive(conn.stream, r.method, opts)
	conn.interruptWrite()
	unwritten := <-written
	switch {
	case !conn.began():
		if errors.Is(unwritten, os.ErrDeadlineExceeded) && ctx.Err() == nil {
			unwritten = errEarly // by interruptWrite
		}
		return notSent(unwritten), false
	case err != nil:
		return lost(ctx, answer.Status, err, unwritten, opts), false
	default:
		return answer, unwritten == nil
	}
}

func notSent(err error) Answer {
	return Answer{Sent: NotSent, Reason: events.ReasonNotSent, Detail: detail(err.Error())}
}

func lost(ctx context.Context, status int, err, unwritten error, opts Options) Answer {
	a := Answer{Sent: Lost, Status: status, Reason: events.ReasonResponseLost, Detail: err.Error()}
	var f fault
	switch {
	case errors.As(err, &f):
		a.Reason = events.ReasonAdapterError
	case errors.Is(err, os.ErrDeadlineExceeded):
		a.Reason, a.Detail = interrupted(ctx, opts)
	}
	if unwritten != nil {
		a.Detail += "; the request was not written to its end"
	}
	a.Detail = detail(a.Detail)
	return a
}

// interrupted says who ended an exchange that was cut off from this side.
func interrupted(ctx context.Context, opts Options) (events.Reason, string) {
	switch cause := context.Cause(ctx); {
	case opts.Shutdown != nil && errors.Is(cause, opts.Shutdown):
		return events.ReasonShutdown, "shut down before the answer was complete"
	case errors.Is(ctx.Err(), context.Canceled):
		return events.ReasonAdapterError, "cancelled before the answer was complete"
	default:
		return events.ReasonTimeout, "the deadline passed before the answer was complete"
	}
}

// detail bounds a text that may quote a peer, such as the names of a certificate.
func detail(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
