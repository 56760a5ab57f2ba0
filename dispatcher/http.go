package dispatcher

import (
	"context"
	"crypto/x509"
	"errors"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/dispatcher/httpcall"
	"github.com/effectd/effectd/events"
)

// HTTP sends one HTTP request, really one (see package httpcall), and reads the
// answer by the contract's outcomes.
type HTTP struct {
	Now     func() time.Time
	RootCAs *x509.CertPool // nil: the system's
}

// Render builds the request.
func (h HTTP) Render(s Send) (Shot, error) {
	call, err := s.Contract.HTTPSend(s.input())
	if err != nil {
		return nil, err
	}
	shot := httpShot{HTTP: h, send: s, call: httpcall.Call{Method: call.Method, URL: call.URL, Header: call.Header, Body: call.Body}}
	return shot, shot.call.Validate()
}

type httpShot struct {
	HTTP
	send Send
	call httpcall.Call
}

// Fire sends the request.
func (h httpShot) Fire(ctx context.Context, deadline time.Time) aggregate.Result {
	a := httpcall.Do(ctx, h.call, httpcall.Options{Deadline: deadline, Now: h.Now, RootCAs: h.RootCAs, Shutdown: ErrShutdown})
	evidence := events.Evidence{Source: "adapter", At: events.InstantOf(h.Now()), Status: int64(a.Status), Detail: a.Detail}
	switch a.Sent {
	case httpcall.NotSent:
		return aggregate.Result{Outcome: events.OutcomeNoEffect, Reason: events.ReasonNotSent, Evidence: evidence}
	case httpcall.Answered:
		evidence.SHA256 = events.DigestBytes(a.Body)
		verdict, matched := h.send.Contract.Classify(operation.Response{Status: int64(a.Status), Headers: a.Headers, Body: a.Body}, h.send.input())
		return Judge(verdict, matched, evidence, events.ReasonClassified)
	}
	return aggregate.Result{Reason: a.Reason, Evidence: evidence}
}

// Judge turns what the contract's rules say of an answer into a result: no match
// proves nothing.
func Judge(v operation.Verdict, matched bool, evidence events.Evidence, reason events.Reason) aggregate.Result {
	if !matched || v.Outcome == events.OutcomeUnknown {
		evidence.Detail = "no rule of the contract matches the answer"
		return aggregate.Result{Reason: events.ReasonUnclassified, Evidence: evidence}
	}
	evidence.Rule, evidence.Named = v.Rule, v.Named
	return aggregate.Result{Outcome: v.Outcome, Means: v.Means, Reason: reason, Evidence: evidence,
		Cost: v.Cost, CostInvalid: v.CostInvalid, ProviderRef: v.ProviderRef}
}

// Ask sends one read of a reconciliation; it changes nothing at the service.
func (h HTTP) Ask(ctx context.Context, call operation.Call, deadline time.Time) (operation.Response, error) {
	a := httpcall.Do(ctx, httpcall.Call{Method: call.Method, URL: call.URL, Header: call.Header, Body: call.Body},
		httpcall.Options{Deadline: deadline, Now: h.Now, RootCAs: h.RootCAs, Shutdown: ErrShutdown})
	if a.Sent != httpcall.Answered {
		return operation.Response{}, errors.New(a.Detail)
	}
	return operation.Response{Status: int64(a.Status), Headers: a.Headers, Body: a.Body}, nil
}
