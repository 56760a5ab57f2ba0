// Command effectd governs external effects. It has no rules of the domain: every
// command is a call of the client, of the embedded node, or of the audit.
//
//	args ──kong──▶ one command ──▶ a reply ──▶ table, or with --json the wire object
//	                    └── error ──▶ what, where and what to do next; exit code
//
// Invariants:
//
//	M1  Exit codes: 0 done, 1 refused or failed, 2 usage, 3 outcome unknown,
//	    4 ledger untrusted or unreachable.
//	M2  With --json standard output holds wire objects alone, one a line; a
//	    refusal is the wire's error body.
//	M3  Standard error is for people: progress, hints, logs.
//	M4  Every claim that the demo prints was checked.
package main
