// Package reconciler carries out one bounded, authorized attempt to find out what
// became of an unknown effect. It asks; it never sends the effect.
//
//	reconcile-started (authorized, deadline) ──▶ one query at the service ──▶ reconcile-ended ──▶ settled, if it proves
//
// Invariants:
//
//	R1  An attempt is carried out only after its start is in the log, by the
//	    process that the log names, before its deadline.
//	R2  Only an answer that a rule of the contract matches is conclusive; "not
//	    found" only under the conditions that the law checks.
//	R3  An interrupted attempt ends as inconclusive.
package reconciler
