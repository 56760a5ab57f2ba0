package wire

import "time"

// DefaultWait bounds a request that waits and names no timeout_ms: shorter than
// the 5 s after which stock clients give up, so that they get an answer.
const DefaultWait = 4 * time.Second

// MaxWait is the longest that a request waits.
const MaxWait = 10 * time.Minute

// Awaited is the condition that a "wait" names; none holds at once, and an empty
// one is admitted. Unknown ends every wait: nothing follows by itself.
func Awaited(wait string) func(State) bool {
	return func(s State) bool {
		switch wait {
		case WaitNone:
			return true
		case WaitTerminal:
			return s.Terminal() || s == StateUnknown
		}
		return s != StatePrepared && s != StatePermitted
	}
}

// WaitFor is the bound of a wait, by its timeout_ms.
func WaitFor(ms int64) time.Duration {
	if ms <= 0 {
		return DefaultWait
	}
	return time.Duration(min(ms, int64(MaxWait/time.Millisecond))) * time.Millisecond
}
