// Package audit decides again, from the log alone, everything that the log says
// was decided. It is what verify runs, and it trusts nothing that the writer
// computed.
//
//	entries in order ──▶ rules about the entry ──▶ for each event: rules on the state before it ──▶ fold ──▶ rules on the state after
//
// A rule that had nothing to check says so: Checked is 0, which is not "ok".
//
// Not found without a signed head: a log that was replaced as a whole by another
// one that is consistent in itself, or cut at an entry's end.
package audit
