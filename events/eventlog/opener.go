package eventlog

import (
	"sync"

	"github.com/effectd/effectd/events"
)

// message is one stored message as a server returned it.
type message struct {
	seq  uint64
	body []byte
}

// opener turns stored bytes into entries and refuses what L5 names.
type opener struct {
	cache *cache

	mu     sync.Mutex
	ledger events.LedgerID // empty until the first entry
}

func newOpener(ledger events.LedgerID) *opener {
	return &opener{cache: newCache(), ledger: ledger}
}

// open decodes one message, or takes the decoded entry of the same bytes.
func (o *opener) open(m message) (events.Stored, error) {
	sum := events.DigestBytes(m.body)
	s, known := o.cache.get(sum)
	if !known {
		var err error
		if s, err = events.Open(m.body); err != nil {
			return events.Stored{}, distrust(m.seq, "%s", err)
		}
		o.cache.put(s)
	}
	if s.Seq != m.seq {
		return events.Stored{}, distrust(m.seq, "the entry there says it is %d", s.Seq)
	}
	if !o.own(s.LedgerID) {
		return events.Stored{}, distrust(m.seq, "the entry belongs to another ledger")
	}
	return s, nil
}

func (o *opener) own(ledger events.LedgerID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ledger == "" {
		o.ledger = ledger
	}
	return o.ledger == ledger
}

// unroll opens consecutive messages that begin with the one before from (with
// from itself when from is 1). gap is the first sequence that is not where it
// should be, 0 if none; the caller finds out why. The entries before a gap or
// an error are good.
func (o *opener) unroll(from uint64, msgs []message) (out []events.Stored, gap uint64, err error) {
	next, prev := from, events.ZeroDigest
	if from > 1 {
		if len(msgs) == 0 || msgs[0].seq != from-1 {
			return nil, from - 1, nil
		}
		prev, msgs = events.DigestBytes(msgs[0].body), msgs[1:]
	}
	for _, m := range msgs {
		if m.seq != next {
			return out, next, nil
		}
		s, err := o.open(m)
		if err != nil {
			return out, 0, err
		}
		if err := linked(prev, s); err != nil {
			return out, 0, err
		}
		out, prev, next = append(out, s), s.SHA256, next+1
	}
	return out, 0, nil
}

// linked checks that s follows the entry with digest prev.
func linked(prev events.Digest, s events.Stored) error {
	if s.Prev != prev {
		return distrust(s.Seq, "broken chain: it does not follow the entry before it")
	}
	return nil
}
