// Package rehearsal plays a ledger without a log, for tests of the law and of
// what reads the law: a clock that is told, ids that count, keys that are fixed.
// Equal calls give equal entries, byte for byte.
//
//	World.Do(command) ──▶ decide on a branch ──▶ seal one entry ──▶ adopt the branch
//
// [World.Walk] does one random command that some caller might send, sensible or
// not; whoever calls it chooses the randomness and so can shrink it.
package rehearsal
