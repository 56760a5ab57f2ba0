package operation

import (
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/effectd/effectd/events"
)

// Input is what one effect gives to the expressions of its contract.
type Input struct {
	Payload        Payload
	Precondition   events.Raw // nil when there is none
	Resource       string
	EffectID       events.EffectID
	IdempotencyKey events.IdempotencyKey
	ProviderRef    string // of an earlier answer; empty when none is known
	// Secret answers with the value of a declared secret. It is asked when a
	// header or body is built and when a response is scrubbed; nil knows none.
	Secret func(name string) (string, bool)
}

// scope resolves the variables of one evaluation. Which of them an expression
// may name was settled when it was compiled.
type scope struct {
	Input
	precondition any
	response     *answer
}

var _ cel.Activation = (*scope)(nil)

// newScope is the scope of an effect; a precondition that is not JSON is absent.
func newScope(in Input) *scope {
	s := &scope{Input: in}
	if len(in.Precondition) > 0 {
		s.precondition, _ = decode(in.Precondition)
	}
	return s
}

// ResolveName answers with the value of a variable.
func (s *scope) ResolveName(name string) (any, bool) {
	switch name {
	case "payload":
		return s.Payload.value, true
	case "precondition":
		return s.precondition, true
	case "resource":
		return s.Resource, true
	case "effect_id":
		return string(s.EffectID), true
	case "idempotency_key":
		return string(s.IdempotencyKey), true
	case "provider_ref":
		return s.ProviderRef, true
	}
	if s.response != nil {
		if v, ok := s.response.resolve(name); ok {
			return v, true
		}
	}
	if secret, ok := strings.CutPrefix(name, "secret."); ok && s.Secret != nil {
		return s.Secret(secret)
	}
	return nil, false
}

// Parent is nil: there is no outer scope.
func (s *scope) Parent() cel.Activation { return nil }
