package audit_test

import (
	"strings"

	"github.com/effectd/effectd/aggregate/audit"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
)

func permit(which func(*damaged) events.EffectID, f func(*events.Permit)) func(*damaged) events.Position {
	return func(d *damaged) events.Position {
		return edit(d, which(d), func(_ *event, p *events.Permitted) { f(&p.Permit) })
	}
}

func sent(d *damaged) events.EffectID  { return d.sent }
func wired(d *damaged) events.EffectID { return d.wired }

// authorityDamage is to permits, approvals and words of operators.
var authorityDamage = []damage{
	{"a permit that lives longer", audit.Unauthorized, permit(sent, func(p *events.Permit) { p.ExpiresAt = p.ExpiresAt.Add(1) })},
	{"a permit for more", audit.Unauthorized, permit(sent, func(p *events.Permit) { p.MaxCost = events.Amounts{"usd_cents": 1000} })},
	{"a permit for another binding", audit.DigestMismatch, permit(sent, func(p *events.Permit) { p.BindingDigest = events.ZeroDigest })},
	{"a permit of another policy", audit.DigestMismatch, permit(sent, func(p *events.Permit) { p.Authorization.PolicySHA256 = events.ZeroDigest })},
	{"a permit for another question", audit.Unauthorized, permit(sent, func(p *events.Permit) { p.Authorization.CedarRequest = events.Raw(`{}`) })},
	{"a permit by another rule", audit.Unauthorized, permit(sent, func(p *events.Permit) { p.Authorization.Determining = []string{"mine"} })},
	{"a policy permit where an approval is needed", audit.Unauthorized, func(d *damaged) events.Position {
		return edit(d, d.wired, func(ev *event, p *events.Permitted) {
			a := &p.Permit.Authorization
			a.Kind, a.Approver, a.StatementSHA256, ev.Actor = events.AuthorizationPolicy, "", "", events.SystemActor
			p.Permit.Statement, p.Permit.Signature, p.Permit.PublicKey = "", "", ""
		})
	}},
	{"an approval's signature", audit.SignatureInvalid, permit(wired, func(p *events.Permit) { p.Signature = strings.Repeat("A", len(p.Signature)-2) + "==" })},
	{"an approval's statement, digested anew", audit.SignatureInvalid, permit(wired, func(p *events.Permit) {
		p.Statement = strings.Replace(p.Statement, `"usd_cents":100`, `"usd_cents":900`, 1)
		p.Authorization.StatementSHA256 = events.DigestBytes([]byte(p.Statement))
	})},
	{"an approval's statement", audit.DigestMismatch, permit(wired, func(p *events.Permit) { p.Statement += " " })},
	{"an approval by a key that is not registered", audit.SignatureInvalid, func(d *damaged) events.Position {
		forged := d.Signed(rehearsal.Other, d.wired, "approve", func(s map[string]any) { s["approver"] = rehearsal.Approver.Actor() })
		return permit(wired, func(p *events.Permit) {
			p.Statement, p.Signature, p.PublicKey = forged.Statement, forged.Signature, forged.PublicKey
			p.Authorization.StatementSHA256 = events.DigestBytes([]byte(p.Statement))
		})(d)
	}},
	{"an approval of another effect", audit.SignatureInvalid, func(d *damaged) events.Position {
		other := d.Signed(rehearsal.Approver, d.denied, "approve")
		return permit(wired, func(p *events.Permit) {
			p.Statement, p.Signature = other.Statement, other.Signature
			p.Authorization.StatementSHA256 = events.DigestBytes([]byte(p.Statement))
		})(d)
	}},
	{"a denial used as an approval", audit.SignatureInvalid, func(d *damaged) events.Position {
		denial := d.Signed(rehearsal.Approver, d.wired, "deny")
		return permit(wired, func(p *events.Permit) {
			p.Statement, p.Signature = denial.Statement, denial.Signature
			p.Authorization.StatementSHA256 = events.DigestBytes([]byte(p.Statement))
		})(d)
	}},
	{"an approver who is none", audit.Unauthorized, func(d *damaged) events.Position {
		return edit(d, d.wired, func(ev *event, p *events.Permitted) {
			p.Permit.Authorization.Approver, ev.Actor = rehearsal.Operator.Actor(), rehearsal.Operator.Actor()
		})
	}},
	{"a denial's signature", audit.SignatureInvalid, func(d *damaged) events.Position {
		return edit(d, d.denied, func(_ *event, r *events.Refused) { r.Signature = strings.Repeat("A", len(r.Signature)-2) + "==" })
	}},
	{"an acknowledgement by the producer", audit.Unauthorized, func(d *damaged) events.Position {
		return edit(d, d.lost, func(ev *event, _ *events.Acknowledged) { ev.Actor = rehearsal.Producer.Actor() })
	}},
	{"an attempt by an auditor", audit.Unauthorized, func(d *damaged) events.Position {
		return edit(d, d.lost, func(ev *event, s *events.ReconcileStarted) {
			ev.Actor, s.AuthorizedBy = rehearsal.Auditor.Actor(), rehearsal.Auditor.Actor()
		})
	}},
	{"an operator's outcome", audit.SignatureInvalid, func(d *damaged) events.Position {
		return edit(d, d.byHand, func(_ *event, s *events.Settled) {
			s.Outcome, s.Cost = events.OutcomeFailed, events.Amounts{"usd_cents": 100}
		})
	}},
	{"an operator's unsigned no_effect", audit.SignatureInvalid, func(d *damaged) events.Position {
		return edit(d, d.byHand, func(_ *event, s *events.Settled) { s.Statement, s.Signature, s.PublicKey = "", "", "" })
	}},
	{"an operator's evidence", audit.DigestMismatch, func(d *damaged) events.Position {
		return edit(d, d.byHand, func(_ *event, s *events.Settled) { s.Evidence.Named = events.Raw(`{"reference":"none"}`) })
	}},
	{"an operator's evidence, digested anew", audit.SignatureInvalid, func(d *damaged) events.Position {
		return edit(d, d.byHand, func(_ *event, s *events.Settled) {
			s.Evidence.Named = events.Raw(`{"reference":"none"}`)
			s.Evidence.SHA256 = events.DigestBytes(s.Evidence.Named)
		})
	}},
}

// lawDamage is to the law: what it decided does not follow from it any more.
var lawDamage = []damage{
	{"the policy", audit.DigestMismatch, func(d *damaged) events.Position {
		return edit(d, "", func(_ *event, p *events.PolicyChanged) { p.Policy += "\n" })
	}},
	{"the policy, digested anew", audit.DigestMismatch, func(d *damaged) events.Position {
		edit(d, "", func(_ *event, p *events.PolicyChanged) {
			p.Policy = rehearsal.DenyAll
			p.PolicySHA256 = events.DigestBytes([]byte(p.Policy))
		})
		i, j := at[events.Permitted](d, d.early, 0)
		return position(i, j)
	}},
	{"a policy that does not parse", audit.LawInvalid, func(d *damaged) events.Position {
		return editNth(d, "", 1, func(_ *event, p *events.PolicyChanged) {
			p.Policy = "permit("
			p.PolicySHA256 = events.DigestBytes([]byte(p.Policy))
		})
	}},
	{"a policy revision is left out", audit.RevisionGap, func(d *damaged) events.Position {
		return editNth(d, "", 1, func(_ *event, p *events.PolicyChanged) { p.Revision++ })
	}},
	{"a contract", audit.DigestMismatch, func(d *damaged) events.Position {
		return edit(d, "", func(_ *event, o *events.OperationRegistered) {
			o.Contract = strings.Replace(o.Contract, "expires: 10m", "expires: 11m", 1)
		})
	}},
	{"a contract, digested anew", audit.OperationMismatch, func(d *damaged) events.Position {
		edit(d, "", func(_ *event, o *events.OperationRegistered) {
			o.Contract = strings.Replace(o.Contract, "expires: 10m", "expires: 11m", 1)
			o.Digest = rehearsal.Contract(o.Contract).Digest
		})
		i, j := at[events.Prepared](d, d.sent, 0)
		return position(i, j)
	}},
	{"a contract that does not compile", audit.LawInvalid, func(d *damaged) events.Position {
		return edit(d, "", func(_ *event, o *events.OperationRegistered) { o.Contract = "name: charge" })
	}},
	{"a contract under another name", audit.OperationMismatch, func(d *damaged) events.Position {
		return edit(d, "", func(ev *event, _ *events.OperationRegistered) { ev.Operation = "other" })
	}},
	{"a contract is registered twice", audit.DuplicateOperation, func(d *damaged) events.Position { return again[events.OperationRegistered](d, "") }},
	{"a contract was retired before", audit.Unauthorized, func(d *damaged) events.Position {
		i, _ := at[events.Settled](d, d.early, 0)
		d.insert(i, events.Event{Tenant: events.SystemTenant, Actor: events.SystemActor, Operation: "charge", Data: events.OperationRetired{Version: 1}})
		i, j := at[events.Prepared](d, d.sent, 0)
		return position(i, j)
	}},
	{"a principal is left out", audit.Unauthorized, func(d *damaged) events.Position {
		edit(d, "", func(_ *event, a *events.AccessChanged) {
			var users []events.User
			for _, u := range a.Users {
				if u.Principal != "producer" || u.Tenant != "main" {
					users = append(users, u)
				}
			}
			a.Users = users
		})
		i, j := at[events.TaskOpened](d, "", 1)
		return position(i, j)
	}},
	{"a principal is there twice", audit.LawInvalid, func(d *damaged) events.Position {
		return edit(d, "", func(_ *event, a *events.AccessChanged) {
			a.Users = append(a.Users[:len(a.Users):len(a.Users)], a.Users[0])
		})
	}},
	{"the law by a user", audit.Unauthorized, func(d *damaged) events.Position {
		return edit(d, "", func(ev *event, _ *events.PolicyChanged) { ev.Actor = rehearsal.Operator.Actor() })
	}},
}
