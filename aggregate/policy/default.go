package policy

import _ "embed"

// Default is the policy of a new ledger (SPEC 20).
//
//go:embed default.cedar
var Default string
