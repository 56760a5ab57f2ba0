package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// exit is an exit code (M1). As an error it says that everything is printed.
type exit int

const (
	exitDone exit = iota
	exitRefused
	exitUsage
	exitUnknown
	exitUnreachable
)

func (x exit) Error() string { return fmt.Sprintf("exit code %d", int(x)) }

// usage is a command line that makes no sense, and the way out.
type usage struct{ what, hint string }

func (u *usage) Error() string { return u.what }

// hinted is an error with what to do next.
type hinted struct {
	err  error
	next string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// hint adds what to do next to an error.
func hint(err error, format string, args ...any) error {
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// fail prints an error and returns the exit code; nil is done.
func (e *env) fail(err error) int {
	var done exit
	var bad *usage
	switch {
	case err == nil:
		return int(exitDone)
	case errors.As(err, &done):
		return int(done)
	case errors.As(err, &bad):
		e.note("effectd: %s\n  → %s", bad.what, bad.hint)
		return int(exitUsage)
	}
	refusal, code := classify(err)
	if e.json {
		e.object(wire.ErrorReply{Error: refusal})
	}
	e.explain(refusal, adviceFor(err, refusal))
	return int(code)
}

// classify is the wire's form of an error and the exit code that it means.
func classify(err error) (*wire.Error, exit) {
	var refusal *wire.Error
	switch {
	case errors.As(err, &refusal):
		return refusal, codeOf(refusal)
	case errors.Is(err, eventlog.ErrUntrusted):
		return wire.Errorf(wire.LedgerUntrusted, err.Error()), exitUnreachable
	case errors.Is(err, client.ErrDenied):
		return wire.Errorf(wire.Forbidden, err.Error()), exitRefused
	case errors.Is(err, errMayBeDone):
		return wire.Errorf(wire.CommitUnknown, err.Error()), exitUnknown
	case errors.Is(err, client.ErrUnreachable), errors.Is(err, errNotRunning):
		return wire.Errorf(wire.LedgerUnavailable, err.Error()), exitUnreachable
	case errors.Is(err, context.Canceled):
		return wire.Errorf(codeFailed, "interrupted"), exitRefused
	}
	return wire.Errorf(codeFailed, err.Error()), exitRefused
}

// codeFailed is the code of what failed on this side of the wire.
const codeFailed wire.Code = "failed"

// errMayBeDone: a request that changes something got no answer.
var errMayBeDone = errors.New("no answer: it may have been done")

func codeOf(refusal *wire.Error) exit {
	switch refusal.Code {
	case wire.CommitUnknown, wire.WaitTimeout:
		return exitUnknown
	case wire.LedgerUnavailable, wire.LedgerUntrusted, wire.ClockUntrusted:
		return exitUnreachable
	}
	if refusal.Effect != nil && refusal.Effect.State == wire.StateUnknown {
		return exitUnknown
	}
	return exitRefused
}

// explain says what went wrong, for people: code, field, message, state, what next.
func (e *env) explain(refusal *wire.Error, next string) {
	text := "effectd: "
	if refusal.Code != codeFailed {
		text += string(refusal.Code) + ": "
	}
	if refusal.Field != "" {
		text += refusal.Field + ": "
	}
	e.note("%s", plain(text+refusal.Message))
	if x := refusal.Effect; x != nil && !e.json {
		e.note("  effect %s: %s", x.EffectID, stateWords(x))
	}
	if next != "" {
		e.note("  → %s", next)
	}
}

// advice is what to do next, where that is obvious from the code alone.
var advice = map[wire.Code]string{
	wire.BindingMismatch:   "this run and causal id already asked for something else; use a new --causal-id for a new effect",
	wire.BudgetExceeded:    "see what is left: effectd task get TASK",
	wire.ExposureExceeded:  "effects of this task are unresolved: effectd list --state unknown",
	wire.UnknownTask:       "an operator opens tasks and names their holders: effectd task open TASK --holder TENANT/PRINCIPAL",
	wire.UnknownOperation:  "see what is registered: effectd operation list; files in operations/ are loaded by serve and on SIGHUP",
	wire.PermitRequired:    "an approver decides: effectd pending, effectd approve EFFECT",
	wire.SelfApproval:      "another approver decides",
	wire.Expired:           "prepare it anew with a later --expires",
	wire.WaitTimeout:       "it goes on: effectd get EFFECT --wait terminal",
	wire.CommitUnknown:     "repeat the same command with the same --run-id and --causal-id: it is never done twice",
	wire.LedgerUntrusted:   "nothing is written or sent until the store is repaired: effectd verify, effectd doctor",
	wire.ClockUntrusted:    "check the clock, then: effectd ledger confirm-clock",
	wire.LedgerUnavailable: "is the node running? effectd serve, effectd doctor",
	wire.PolicyDenied:      "the owner's policy is policy.cedar in the data directory",
	wire.AttemptInProgress: "wait for the running attempt to end: effectd get EFFECT",
	wire.NotDispatching:    "see why: effectd ledger status",
	wire.RunUnresolved:     "see what is not settled: effectd list",

	wire.ReconciliationUnsupported: "state what is proven: effectd settle EFFECT; or accept the risk: effectd acknowledge EFFECT",
}

// adviceOn is advice about the effect at hand, if there is one.
func adviceOn(refusal *wire.Error) string {
	x := refusal.Effect
	if x == nil {
		return advice[refusal.Code]
	}
	code := refusal.Code
	if code == wire.WaitTimeout && x.Permit != nil && x.Permit.State == wire.PermitPendingState {
		code = wire.PermitRequired
	}
	return strings.NewReplacer("EFFECT", string(x.EffectID), "TASK", string(x.TaskID)).Replace(advice[code])
}

func adviceFor(err error, refusal *wire.Error) string {
	var h *hinted
	if errors.As(err, &h) {
		return h.next
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return "name what leads to the server's certificate: --tls-ca FILE; the URL must have a name that the certificate is for"
	}
	if errors.Is(err, client.ErrDenied) {
		return "the NATS server does not know this user so: effectd doctor; with --nkey, --tenant and --principal must name the user of the key"
	}
	return adviceOn(refusal)
}
