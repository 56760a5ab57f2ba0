package projector

import "github.com/effectd/effectd/events"

// Name is what a producer calls an effect.
type Name struct {
	Tenant   events.Tenant
	RunID    events.RunID
	CausalID events.CausalID
}

// value is the row of table B.
func (n Name) value() []byte {
	return keyOf(tableNamed, string(n.Tenant), string(n.RunID), string(n.CausalID))[1:]
}

func readName(b []byte) (n Name, err error) {
	var tenant, run, causal string
	if tenant, b, err = cutName(b); err != nil {
		return n, err
	}
	if run, b, err = cutName(b); err != nil {
		return n, err
	}
	if causal, b, err = cutName(b); err != nil || len(b) != 0 {
		return n, errName
	}
	return Name{events.Tenant(tenant), events.RunID(run), events.CausalID(causal)}, nil
}
