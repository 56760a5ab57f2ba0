// Package policy is who may do what: the owner's Cedar policy, and the signed
// statements of approvers and operators.
//
//	policy.cedar ──Parse──▶ Policy ──Decide(Request)──▶ allow or deny, and which policies determined it
//	statement + signature ──Verify──▶ what a registered key said about exactly this effect
//
// The package is pure: no clock, no randomness, no I/O.
//
// Invariants:
//
//	P1  Deny is the default: the zero Decision, a nil Policy and an empty text
//	    allow nothing. A forbid that matches outweighs every permit.
//	P2  A decision is a function of the policy text and the request, and names
//	    the policies that determined it in a fixed order. [Request.JSON] is the
//	    whole request: anybody can decide it again.
//	P3  As Cedar says, a policy whose evaluation fails does not count. It is
//	    named in Errors; policies test optional members with `has`.
//	P4  A text that names an action or a role that does not exist does not parse:
//	    it could not mean what its writer thinks. Nor does a proposal that names
//	    an operation, an attribute, an exposed field or a unit that does not
//	    exist, or that compares what is never equal. A text that the log holds is
//	    not held against the operations: they change after it.
//	P5  A statement is canonical bytes: one statement has one text, and a
//	    signature covers every field of it. What is not the expected statement,
//	    field by field, is no statement.
//	P6  Errors name policies, lines and fields, never values of a payload.
package policy
