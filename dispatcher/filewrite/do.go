package filewrite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/effectd/effectd/events"
)

// notWritten is an error before the effect, with its kind.
type notWritten struct {
	fault Fault
	what  string
	err   error // nil when what says all
}

func (e *notWritten) Error() string {
	if e.err == nil {
		return e.what
	}
	return e.what + ": " + e.err.Error()
}

func (e *notWritten) Unwrap() error { return e.err }

func refuse(fault Fault, what string) error { return &notWritten{fault: fault, what: what} }

// failed classes an error of the file system before the effect.
func failed(what string, err error) error {
	return &notWritten{fault: FaultIO, what: what, err: unnamed(err)}
}

// unnamed drops the path from an error: it may be made from the payload.
func unnamed(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// Do makes the write and says what is proven (W1 to W8). It changes nothing
// after the deadline, and nothing once ctx is cancelled.
func Do(ctx context.Context, w Write, opts Options) Answer {
	return do(ctx, w, opts, (*place).sync)
}

// do takes the fsync of the directory as an argument, because no file system
// fails there on demand.
func do(ctx context.Context, w Write, opts Options, sync func(*place) error) Answer {
	if err := w.Validate(); err != nil {
		return answer(refuse(FaultInvalid, err.Error()), "")
	}
	if opts.Now == nil {
		return answer(refuse(FaultInvalid, "now: a clock is required"), "")
	}
	if !filepath.IsLocal(w.Path) {
		return answer(refuse(FaultEscape, "path: leads outside the root"), "")
	}
	ctx, cancel := context.WithDeadline(ctx, opts.Deadline)
	defer cancel()
	p, err := open(w)
	if err != nil {
		return answer(err, "")
	}
	defer p.close()
	return answer(p.write(ctx, w, opts, sync), events.DigestBytes(w.Content))
}

func (p *place) write(ctx context.Context, w Write, opts Options, sync func(*place) error) error {
	if w.Expect == "" {
		if err := p.vacant(); err != nil {
			return err
		}
	} else {
		old, err := p.expected(ctx, w.Expect)
		if err != nil {
			return err
		}
		if w.Mode == 0 {
			w.Mode = old.Mode().Perm()
		}
	}
	if err := p.stage(w); err != nil {
		return err
	}
	defer p.unstage()
	if w.Expect == "" {
		if err := inTime(ctx, opts); err != nil {
			return err
		}
		return p.finish(p.parent.Link(p.temp, p.name), sync)
	}
	unlock, err := p.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := p.expected(ctx, w.Expect); err != nil {
		return err
	}
	if err := inTime(ctx, opts); err != nil {
		return err
	}
	return p.finish(p.parent.Rename(p.temp, p.name), sync)
}

// inTime is the last question before the effect (W5).
func inTime(ctx context.Context, opts Options) error {
	if err := context.Cause(ctx); err != nil {
		return &notWritten{fault: FaultDeadline, what: "cancelled before the effect", err: err}
	}
	if !opts.Now().Before(opts.Deadline) {
		return refuse(FaultDeadline, "the deadline was over before the effect")
	}
	return nil
}

// finish turns the result of the link or rename into a proof (W6). An error
// proves nothing by itself: over a network the answer alone may be lost.
func (p *place) finish(moved error, sync func(*place) error) error {
	if moved != nil {
		if holds, err := p.holds(); err != nil || !holds && unsure(moved) {
			return errors.Join(fmt.Errorf("place the file: %w", unnamed(moved)), err)
		} else if !holds && errors.Is(moved, fs.ErrExist) {
			return refuse(FaultExists, "a file has the name")
		} else if !holds {
			return failed("place the file", moved)
		}
	}
	p.unstage() // before the fsync, which then covers it
	return sync(p)
}

// unsure reports whether a failed link or rename may still come to be.
func unsure(moved error) bool {
	for _, errno := range []unix.Errno{unix.EIO, unix.EINTR, unix.ESTALE, unix.ETIMEDOUT} {
		if errors.Is(moved, errno) {
			return true
		}
	}
	return false
}

func answer(err error, sum events.Digest) Answer {
	var not *notWritten
	switch {
	case err == nil:
		return Answer{Proof: Written, SHA256: sum}
	case errors.As(err, &not):
		return Answer{Proof: NotWritten, Fault: not.fault, Reason: events.ReasonNotSent, Detail: not.Error()}
	default:
		return Answer{Proof: Lost, Reason: events.ReasonAdapterError, Detail: err.Error()}
	}
}
