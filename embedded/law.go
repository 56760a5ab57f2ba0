package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
)

// proposal is what the owner's files say.
type proposal struct {
	users     []events.User
	contracts []*operation.Contract
	policy    []byte
}

// Reload loads changed users, operations and policy as new versions, and the
// certificate, and leaves word of it in node.json. An error is about all of them: nothing was loaded, or
// what the ledger could not take is loaded by the next reload.
func (n *Node) Reload(ctx context.Context) error {
	n.reloading.Lock()
	defer n.reloading.Unlock()
	err := n.loadLaw(ctx)
	n.reload.Reloads++
	n.reload.Refused = ""
	if err != nil {
		n.reload.Refused = err.Error()
	}
	return errors.Join(err, n.announce())
}

// loadLaw makes the files law. They are checked as a whole first: no part of a law
// that has a fault is loaded (M8). Nobody is let in, and no operation is
// there to be asked for, before the policy that was meant for them. The caller
// holds reloading.
func (n *Node) loadLaw(ctx context.Context) error {
	p, err := n.propose()
	if err != nil {
		return err
	}
	if err := n.link.listener.load(n.config.TLS); err != nil {
		return err
	}
	if err := n.do(ctx, aggregate.ChangeAccess{Users: p.users}); err != nil {
		return err
	}
	if err := n.do(ctx, aggregate.ChangePolicy{Text: string(p.policy)}); err != nil {
		return err
	}
	if n.link.server != nil {
		if err := n.link.server.SetUsers(p.users); err != nil {
			return err
		}
	}
	for _, c := range p.contracts {
		if err := n.do(ctx, aggregate.RegisterOperation{Contract: c}); err != nil {
			return fmt.Errorf("operation %s version %d: %w", c.Name, c.Version, err)
		}
	}
	if n.intake != nil {
		n.intake.Serve(p.users)
	}
	return n.auditConsumers(ctx, p.users)
}

// propose reads the owner's files, and says every fault of all of them.
func (n *Node) propose() (p proposal, err error) {
	var faults []error
	add := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	p.users, err = n.home.Users()
	if err == nil {
		err = n.operatorLeft(p.users)
	}
	add(err)
	p.contracts, err = LoadContracts(n.home)
	known := n.policyOperations(p.contracts)
	if err != nil {
		known = nil // nobody knows what the policy may name
	} else {
		err = SameVersions(p.contracts, n.registered)
	}
	add(err)
	p.policy, err = loadPolicy(n.home.PolicyFile(), known)
	add(err)
	n.reload.UsersSHA256, n.reload.PolicySHA256 = events.DigestOf(p.users), events.DigestBytes(p.policy)
	return p, errors.Join(faults...)
}

// operatorLeft refuses a table without any operator, as an empty or lost file
// gives it: nobody could undo that.
func (n *Node) operatorLeft(users []events.User) error {
	operates := func(u events.User) bool { return u.Role == events.RoleOperator }
	if slices.ContainsFunc(n.ledger.State().Users(), operates) && !slices.ContainsFunc(users, operates) {
		return fmt.Errorf("%s: no operator is left: keep one", n.home.UsersFile())
	}
	return nil
}

// OperationVersion names one contract.
type OperationVersion struct {
	Name   events.OperationName
	Number int64
}

// SameVersions refuses a changed contract under a version that is registered, or
// that another file has. registered is the digest of a version, empty if there is
// none.
func SameVersions(contracts []*operation.Contract, registered func(OperationVersion) events.Digest) error {
	proposed := map[OperationVersion]*operation.Contract{}
	var faults []error
	for _, c := range contracts {
		v := OperationVersion{c.Name, c.Version}
		if known := registered(v); known != "" && known != c.Digest {
			faults = append(faults, fmt.Errorf("%s: operation %s version %d is registered with another contract: give it a new version", c.File, c.Name, c.Version))
		} else if other, twice := proposed[v]; twice && other.Digest != c.Digest {
			faults = append(faults, fmt.Errorf("%s: operation %s version %d: two files with different contracts, and %s is the other", c.File, c.Name, c.Version, other.File))
		}
		proposed[v] = c
	}
	return errors.Join(faults...)
}

func (n *Node) registered(v OperationVersion) events.Digest {
	if known := n.ledger.State().Operation(v.Name, v.Number); known != nil {
		return known.Contract.Digest
	}
	return ""
}

// policyOperations are the operations that a policy may name: registered, or about
// to be.
func (n *Node) policyOperations(contracts []*operation.Contract) []policy.Operation {
	for _, o := range n.ledger.State().Operations() {
		contracts = append(contracts, o.Contract)
	}
	return policyWords(contracts)
}

// policyWords is what a policy may say of contracts.
func policyWords(contracts []*operation.Contract) []policy.Operation {
	out := make([]policy.Operation, len(contracts))
	for i, c := range contracts {
		out[i] = policy.Operation{Name: c.Name, Exposes: c.Exposes, Units: c.Units}
	}
	return out
}

// ReadPolicy checks a policy against the contracts in the configuration directory,
// without a node and without the log.
func ReadPolicy(h *home.Home, file string) (*policy.Policy, []*operation.Contract, error) {
	contracts, err := LoadContracts(h)
	if err != nil {
		return nil, nil, err
	}
	text, err := loadPolicy(file, policyWords(contracts))
	if err != nil {
		return nil, nil, err
	}
	p, err := policy.Parse(text, nil)
	return p, contracts, err
}

// loadPolicy reads and checks the owner's policy.
func loadPolicy(file string, operations []policy.Operation) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	_, err = policy.Parse(text, operations)
	var faults policy.Faults
	if errors.As(err, &faults) {
		err = faults.In(file)
	}
	return text, err
}
