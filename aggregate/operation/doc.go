// Package operation is the law of one kind of effect: the contract that an
// owner writes in YAML, compiled once and asked many times.
//
//	YAML text ──Compile──▶ Contract ─┬─ Validate, Resource, Bound, Exposed   at prepare
//	                                 ├─ HTTPSend, FileWrite                  after the claim
//	                                 ├─ Classify                             on the answer
//	                                 └─ HTTPQuery, ClassifyQuery             to reconcile
//
// The package is pure: no clock, no randomness, no I/O. What a contract says is
// a function of its text and of the arguments alone, so every reader of the log
// recomputes every decision.
//
// Invariants:
//
//	O1  Compile is deterministic: the same text gives the same contract and
//	    digest everywhere. Comments and layout do not change the digest.
//	O2  Every fault of a text is reported at once, with file, line and key.
//	    An unknown key, a duplicate key or a wrong type is a fault.
//	O3  A value fills a place and never changes structure: scheme and host are
//	    the literal ones, a value is one path segment, one query component, one
//	    header line or one segment of the resource.
//	O4  Secrets stand in headers and bodies alone; what a resource or URL says
//	    of the payload is exposed to policy and approvers.
//	O5  A bound is an integer in [0, 2^53−1] for every unit, or an error.
//	O6  A rule whose evaluation fails is no match. No rule, no outcome.
//	O7  Evaluation is bounded in cost and memory, and deterministic: maps are
//	    walked in the order of their keys, nothing reads a clock or a time zone.
//	O8  Errors name fields, units and secrets, never their values.
package operation
