// Package aggregate is the whole law of the ledger, as pure functions over a
// state that is folded from the log.
//
//	           Decide(command, input)                    Evolve(event)
//	State N ─────────────────────────▶ events, refusal ─────────────▶ State N+1
//
// Decide may refuse; Evolve may not fail. Neither knows a clock, randomness or
// I/O: ledger time and fresh ids come in with [Input]. The law itself (contracts,
// policy, principals) decides only in the version that the log holds.
//
// A [State] is a cheap snapshot: [State.Branch] shares everything with its origin
// and copies on write, so that the writer can decide many commands on a branch,
// each on what the ones before it leave, and drop the branch if the append fails.
//
// Invariants, checked by [State.Check] and again by verify:
//
//	A1  Budget: in every task and unit, reserved + spent ≤ max, except by overrun
//	    that the log records.
//	A2  A permit is issued at most once per effect and consumed at most once.
//	A3  One admission per effect, one claim per admission, one settle per effect.
//	A4  (tenant, run_id, causal_id) names at most one effect, for as long as the
//	    log exists.
//	A5  What a task holds is exactly the sum of the reservations of the admitted,
//	    dispatched and unknown effects below it; the part of the unknown ones is
//	    counted apart.
//	A6  An effect that is not settled after its claim keeps its whole reservation,
//	    whatever expires or closes.
//	A7  Only typed evidence settles; everything else after the claim is unknown.
//	A8  Fold(prefix) + suffix == Fold(all); a state restored from its records is
//	    the state.
package aggregate
