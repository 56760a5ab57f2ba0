package main

import "github.com/alecthomas/kong"

// cli is the command line: one field per command, in the order of its help.
type cli struct {
	JSON bool `name:"json" help:"Print wire objects, one a line, instead of tables."`

	Demo demoCmd `cmd:"" group:"start" help:"Show what effectd guarantees, with a real payment service, in seconds."`
	Init initCmd `cmd:"" group:"start" help:"Create a ledger in a data directory."`

	Submit   submitCmd   `cmd:"" group:"effects" help:"Ask for an effect: bind it, admit it, have it sent once."`
	Prepare  prepareCmd  `cmd:"" group:"effects" help:"Bind an effect and hold it."`
	Admit    admitCmd    `cmd:"" group:"effects" help:"Admit a prepared effect."`
	Get      getCmd      `cmd:"" group:"effects" help:"Show one effect."`
	List     listCmd     `cmd:"" group:"effects" help:"List effects, newest first."`
	History  historyCmd  `cmd:"" group:"effects" help:"Show what happened to an effect, and when."`
	Watch    watchCmd    `cmd:"" group:"effects" help:"Follow the log as it grows."`
	Withdraw withdrawCmd `cmd:"" group:"effects" help:"End one's own effect before it is sent."`

	Denials     denialsCmd     `cmd:"" group:"operate" help:"List requests that were denied and left nothing in the log, newest first."`
	Pending     pendingCmd     `cmd:"" group:"operate" help:"What waits for approval."`
	Approve     approveCmd     `cmd:"" group:"operate" help:"Sign that an effect may be sent."`
	Deny        denyCmd        `cmd:"" group:"operate" help:"Sign that an effect may not be sent; it ends."`
	Revoke      revokeCmd      `cmd:"" group:"operate" help:"End anybody's effect before it is sent."`
	Reconcile   reconcileCmd   `cmd:"" group:"operate" help:"Ask the service about one unknown effect."`
	Settle      settleCmd      `cmd:"" group:"operate" help:"State what became of an unknown effect, with evidence."`
	Acknowledge acknowledgeCmd `cmd:"" group:"operate" help:"Accept the risk of an unknown effect; it stays unknown."`
	Task        taskCmd        `cmd:"" group:"operate" help:"Budgets: open, get, tree, close."`
	Run         runCmd         `cmd:"" group:"operate" help:"Runs: get, cancel, finish."`
	Operation   operationCmd   `cmd:"" group:"operate" help:"Registered contracts: list."`
	Policy      policyCmd      `cmd:"" group:"operate" help:"The owner's Cedar policy: show, check, test, apply."`

	Serve  serveCmd  `cmd:"" group:"node" help:"Run the ledger of a data directory."`
	Doctor doctorCmd `cmd:"" group:"node" help:"Check a data directory and say what to do."`
	Ledger ledgerCmd `cmd:"" group:"node" help:"The ledger itself: status, confirm-clock."`
	User   userCmd   `cmd:"" group:"node" help:"Principals and their keys: add, remove, list."`
	Bench  benchCmd  `cmd:"" group:"node" help:"Measure effects per second on a scratch ledger, beside the same pipeline without the law."`

	Verify     verifyCmd     `cmd:"" group:"audit" help:"Check the whole log: chain, digests, decisions, budgets."`
	Rebuild    rebuildCmd    `cmd:"" group:"audit" help:"Make the projection again from the log."`
	Schema     schemaCmd     `cmd:"" group:"audit" help:"Print the JSON Schemas of events, requests and replies."`
	NATSConfig natsConfigCmd `cmd:"" name:"nats-config" group:"audit" help:"Print the configuration for an external NATS server."`
	Version    versionCmd    `cmd:"" group:"audit" help:"Print the version."`
}

func groups() []kong.Group {
	return []kong.Group{
		{Key: "start", Title: "Start here:"},
		{Key: "effects", Title: "Effects:"},
		{Key: "operate", Title: "Operating:"},
		{Key: "node", Title: "The node:"},
		{Key: "audit", Title: "Audit and integration:"},
	}
}
