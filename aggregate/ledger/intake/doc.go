// Package intake takes submitted effects from a durable queue, and records the
// denials that leave nothing in the log (SPEC 6, 12).
//
//	producer ─ effects.requests.main.p ─▶ EFFECT_REQUESTS ─▶ line of main/p, one at a time ─▶ ledger
//	                                       (work queue)         │ refused for good               │
//	                                                            ▼                                ▼ committed
//	requests of the endpoints ─ refused ─ bounded queue ─▶ EFFECT_DENIALS                  request acked
//
// Invariants:
//
//	I1  A request is acked only after its decision is durable: the ledger has it,
//	    or its denial is stored.
//	I2  Of one principal, a request is taken only after the one before it is acked:
//	    by a consumer of its own that has at most one message out.
//	I3  A line that waits holds up no other.
//	I4  What cannot be accepted is denied and gone; what can be accepted later
//	    waits, and is not delivered again for it.
//	I5  A denial holds no payload value.
//	I6  Who asks is what the subject says.
//	I7  An endpoint never waits for a denial: one that cannot be kept is counted.
//
// Delivery is at least once. A request that comes again is the same effect.
package intake
