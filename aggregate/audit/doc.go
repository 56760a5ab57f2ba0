// Package audit reads a log from its first entry and checks, event by event,
// that everything in it could have been decided: what `effectd verify` runs. It
// is pure, and trusts neither the writer nor the fold that made the log.
//
//	                 ┌▶ chain, times, ids, digests          (the entry alone)
//	entry ──▶ event ─┼▶ lives: one small machine per effect (SPEC 5)
//	                 ├▶ law: contracts, policy, people, as logged up to here
//	                 ├▶ books: every account of every task  (SPEC 10)
//	                 └▶ then fold it, and compare the books with the state
//
// Everything is checked before the event is folded, from what the audit itself
// has kept of the log; the state of package aggregate is asked only for what the
// log names for ever (runs, causal ids), and compared in the end.
//
// Invariants:
//
//	U1  A log that package aggregate wrote has no finding.
//	U2  No log makes the audit fail otherwise than by a finding.
//	U3  The first finding stands at the first event that could not have been
//	    decided; later ones may follow from it.
//	U4  A rule that checked nothing says so: its Checked is 0, and it is not "ok".
//	U5  Memory is bounded by the live state: collected effects are forgotten.
//
// # What an audit of the log alone cannot see
//
// The chain shows every change of the past to whoever kept a later hash. Whoever
// can rewrite the log, and chains it anew, is found out only where one event
// contradicts another or the law. Not found without a signed head, a witness or
// the anchor:
//
//   - entries cut off at the end, and another log in the place of the whole one;
//   - an event left out on which no later one builds, such as the end of a run;
//     if its entry goes with it, only behind the last claimed admission, since
//     receipts name positions;
//   - evidence, provider reference, measured cost or outcome of a settlement by
//     the dispatcher: the service's answer is not in the log (one that an
//     operator signed is found);
//   - a field of a payload that neither schema, cost, resource nor policy looks
//     at, with every digest from payload_sha256 to intent_sha256 made anew;
//   - request_sha256: how absent members were sent is not in the log;
//   - times moved within their order and every expiry, and names of writers,
//     programs and claim nonces;
//   - a refusal for a context that differed: the request is not in the log.
package audit
