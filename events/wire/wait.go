package wire

import "time"

// DefaultWait bounds a request that waits and names no timeout_ms: shorter than
// the 5 s after which stock clients give up, so that they get an answer.
const DefaultWait = 4 * time.Second

// MaxWait is the longest that a request waits.
const MaxWait = 10 * time.Minute

// Awaited is the condition that a "wait" names; none holds at once, and an empty
// one is admitted. Unknown ends every wait, and so does an approval that did not
// admit: nothing follows by itself.
func Awaited(wait string) func(*Effect) bool {
	return func(e *Effect) bool {
		switch {
		case wait == WaitNone, e.AdmitError != nil:
			return true
		case wait == WaitTerminal:
			return e.State.Terminal() || e.State == StateUnknown
		}
		return e.State != StatePrepared && e.State != StatePermitted
	}
}

// WaitFor is the bound of a wait, by its timeout_ms.
func WaitFor(ms int64) time.Duration {
	if ms <= 0 {
		return DefaultWait
	}
	return time.Duration(min(ms, int64(MaxWait/time.Millisecond))) * time.Millisecond
}
