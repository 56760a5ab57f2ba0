package policy

// Step is one question and its answer.
type Step struct {
	Action string
	Decision
}

// Steps puts the questions about a prepared effect in their order: may it be
// committed; if not, may an approval be asked for (SPEC 11). The action of the
// request is not looked at. The last step says what becomes of the effect.
func (p *Policy) Steps(r Request) []Step {
	var out []Step
	for _, action := range []string{ActionCommit, ActionRequestApproval} {
		r.Action = action
		out = append(out, Step{action, p.Decide(r)})
		if out[len(out)-1].Allow {
			break
		}
	}
	return out
}

// Actions are the Cedar actions.
func Actions() []string { return append([]string(nil), actions...) }
