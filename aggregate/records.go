package aggregate

import (
	"fmt"

	"github.com/effectd/effectd/events"
	"github.com/go-json-experiment/json"
)

// Kind is the kind of a stored record.
type Kind byte

// The kinds of records that make up a state, in the order in which they are
// loaded.
const (
	KindHead   Kind = 'h'
	KindLaw    Kind = 'l'
	KindTask   Kind = 't'
	KindRun    Kind = 'r'
	KindCausal Kind = 'c' // of collected effects only; the others follow from the effects
	KindEffect Kind = 'e'
)

// Kinds lists every kind in loading order.
func Kinds() []Kind { return []Kind{KindHead, KindLaw, KindTask, KindRun, KindCausal, KindEffect} }

// Key names one record of the state.
type Key struct {
	Kind Kind
	ID   string
}

func (s *State) touch(k Kind, id string) { s.touched[Key{k, id}] = struct{}{} }

// Touched returns the records that changed since the state was branched or
// [State.ClearTouched].
func (s *State) Touched() []Key {
	out := make([]Key, 0, len(s.touched))
	for k := range s.touched {
		out = append(out, k)
	}
	return out
}

// ClearTouched forgets what was touched: it has been stored.
func (s *State) ClearTouched() { s.touched = map[Key]struct{}{} }

// lawRecord is the stored form of the law.
type lawRecord struct {
	Access     events.AccessChanged `json:"access"`
	Policy     events.PolicyChanged `json:"policy"`
	Operations []operationRecord    `json:"operations"`
}

type operationRecord struct {
	Name events.OperationName `json:"name"`
	events.OperationRegistered
	Retired bool `json:"retired,omitzero"`
}

// Record encodes a record; false if the state does not hold it (any more).
func (s *State) Record(k Key) ([]byte, bool) {
	switch k.Kind {
	case KindHead:
		return events.CanonicalOf(s.head), true
	case KindLaw:
		return events.CanonicalOf(s.lawRecord()), true
	case KindTask:
		t, ok := s.tasks.Get(k.ID)
		return events.CanonicalOf(t), ok
	case KindRun:
		r, ok := s.runs.Get(k.ID)
		return events.CanonicalOf(r), ok
	case KindCausal:
		c, ok := s.causal.Get(k.ID)
		return events.CanonicalOf(c), ok && c.Collected
	case KindEffect:
		e, ok := s.effects.Get(k.ID)
		return events.CanonicalOf(e), ok
	}
	return nil, false
}

func (s *State) lawRecord() lawRecord {
	l := lawRecord{Access: s.law.access, Policy: events.PolicyChanged{Revision: s.law.revision, PolicySHA256: s.law.digest, Policy: s.law.text}}
	for _, o := range s.Operations() {
		l.Operations = append(l.Operations, operationRecord{Name: o.Contract.Name, Retired: o.Retired,
			OperationRegistered: events.OperationRegistered{Version: o.Contract.Version, Digest: o.Contract.Digest, Contract: o.Contract.Text}})
	}
	return l
}

// Load adds a stored record to a state made by [New]. Records come in the order
// of [Kinds].
func (s *State) Load(k Key, value []byte) error {
	var err error
	switch k.Kind {
	case KindHead:
		err = decode(value, &s.head)
	case KindLaw:
		err = s.loadLaw(value)
	case KindTask:
		err = load(value, func(t *Task) { s.tasks.Set(k.ID, t) })
	case KindRun:
		err = load(value, func(r *Run) { s.runs.Set(k.ID, r) })
	case KindCausal:
		err = load(value, func(c *Causal) { s.causal.Set(k.ID, c) })
	case KindEffect:
		err = load(value, s.loadEffect)
	default:
		err = fmt.Errorf("unknown kind %q", k.Kind)
	}
	if err != nil {
		return fmt.Errorf("load record %q: %w", k.Kind, err)
	}
	return nil
}

func (s *State) loadEffect(e *Effect) {
	s.effects.Set(string(e.ID), e)
	c := &e.Prepared.Context
	s.causal.Set(causalKey(e.Tenant, c.RunID, c.CausalID), &Causal{Tenant: e.Tenant, RunID: c.RunID, CausalID: c.CausalID,
		EffectID: e.ID, Principal: e.Principal, RequestSHA256: e.Prepared.RequestSHA256})
	s.reindex(nil, e)
}

func (s *State) loadLaw(value []byte) error {
	return load(value, func(l *lawRecord) {
		s.law = s.law.withUsers(l.Access)
		if l.Policy.Revision > 0 {
			s.law = s.law.withPolicy(l.Policy)
		}
		for _, o := range l.Operations {
			s.law = s.law.withOperation(o.Name, o.OperationRegistered)
			if o.Retired {
				s.law = s.law.retire(o.Name, o.Version)
			}
		}
	})
}

func load[T any](value []byte, use func(*T)) error {
	v := new(T)
	if err := decode(value, v); err != nil {
		return err
	}
	use(v)
	return nil
}

func decode(value []byte, v any) error {
	return json.Unmarshal(value, v, json.RejectUnknownMembers(true))
}

// EachRecord calls f for every record in loading order.
func (s *State) EachRecord(f func(Key, []byte)) {
	give := func(k Kind, id string) {
		if b, ok := s.Record(Key{k, id}); ok {
			f(Key{k, id}, b)
		}
	}
	give(KindHead, "")
	give(KindLaw, "")
	s.tasks.Scan(func(id string, _ *Task) bool { give(KindTask, id); return true })
	s.runs.Scan(func(id string, _ *Run) bool { give(KindRun, id); return true })
	s.causal.Scan(func(id string, _ *Causal) bool { give(KindCausal, id); return true })
	s.effects.Scan(func(id string, _ *Effect) bool { give(KindEffect, id); return true })
}

// Digest is the SHA-256 over every record in loading order: equal states, equal
// digests.
func (s *State) Digest() events.Digest {
	var all []byte
	s.EachRecord(func(k Key, b []byte) {
		all = append(all, byte(k.Kind))
		all = append(all, k.ID...)
		all = append(all, 0)
		all = append(all, events.DigestBytes(b)...)
	})
	return events.DigestBytes(all)
}
