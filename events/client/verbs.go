package client

import (
	"context"

	"github.com/effectd/effectd/events/wire"
)

// One method per verb of SPEC 6; each is [Call] with the types of the verb.

// TaskOpen opens a task, or a child of one that the principal holds.
func (c *Client) TaskOpen(ctx context.Context, r wire.TaskOpenRequest) (wire.Task, error) {
	return Call[wire.TaskOpenRequest, wire.Task](ctx, c, wire.TaskOpen, r)
}

// TaskClose ends the authority of a task and its descendants.
func (c *Client) TaskClose(ctx context.Context, r wire.TaskCloseRequest) (wire.Task, error) {
	return Call[wire.TaskCloseRequest, wire.Task](ctx, c, wire.TaskCloseVerb, r)
}

// TaskGet reads a task and its budgets.
func (c *Client) TaskGet(ctx context.Context, r wire.TaskGetRequest) (wire.Task, error) {
	return Call[wire.TaskGetRequest, wire.Task](ctx, c, wire.TaskGet, r)
}

// TaskList reads a page of tasks, in the order of their ids.
func (c *Client) TaskList(ctx context.Context, r wire.TaskListRequest) (wire.List[wire.Task], error) {
	return Call[wire.TaskListRequest, wire.List[wire.Task]](ctx, c, wire.TaskList, r)
}

// Prepare binds an effect exactly, without authority.
func (c *Client) Prepare(ctx context.Context, r wire.PrepareRequest) (wire.Effect, error) {
	return Call[wire.PrepareRequest, wire.Effect](ctx, c, wire.EffectPrepare, r)
}

// Admit admits a prepared effect.
func (c *Client) Admit(ctx context.Context, r wire.AdmitRequest) (wire.Effect, error) {
	return Call[wire.AdmitRequest, wire.Effect](ctx, c, wire.EffectAdmit, r)
}

// Submit prepares and admits an effect.
func (c *Client) Submit(ctx context.Context, r wire.SubmitRequest) (wire.Effect, error) {
	return Call[wire.SubmitRequest, wire.Effect](ctx, c, wire.EffectSubmit, r)
}

// Denials reads a page of the denials of the tenant, newest first.
func (c *Client) Denials(ctx context.Context, r wire.DenialListRequest) (wire.List[wire.Denial], error) {
	return Call[wire.DenialListRequest, wire.List[wire.Denial]](ctx, c, wire.DenialsRead, r)
}

// Get reads an effect.
func (c *Client) Get(ctx context.Context, r wire.GetRequest) (wire.Effect, error) {
	return Call[wire.GetRequest, wire.Effect](ctx, c, wire.EffectGet, r)
}

// List reads a page of effects.
func (c *Client) List(ctx context.Context, r wire.ListRequest) (wire.List[wire.Effect], error) {
	return Call[wire.ListRequest, wire.List[wire.Effect]](ctx, c, wire.EffectList, r)
}

// Withdraw ends an effect that is not admitted yet.
func (c *Client) Withdraw(ctx context.Context, r wire.EffectReasonRequest) (wire.Effect, error) {
	return Call[wire.EffectReasonRequest, wire.Effect](ctx, c, wire.EffectWithdraw, r)
}

// Pending reads a page of what waits for approval, with statements ready to sign.
func (c *Client) Pending(ctx context.Context, r wire.PendingRequest) (wire.PendingList, error) {
	return Call[wire.PendingRequest, wire.PendingList](ctx, c, wire.PermitPending, r)
}

// Approve gives a signed approval.
func (c *Client) Approve(ctx context.Context, r wire.ApprovalRequest) (wire.Effect, error) {
	return Call[wire.ApprovalRequest, wire.Effect](ctx, c, wire.PermitApprove, r)
}

// Deny gives a signed denial.
func (c *Client) Deny(ctx context.Context, r wire.ApprovalRequest) (wire.Effect, error) {
	return Call[wire.ApprovalRequest, wire.Effect](ctx, c, wire.PermitDeny, r)
}

// Revoke takes back a permit that is not consumed.
func (c *Client) Revoke(ctx context.Context, r wire.EffectReasonRequest) (wire.Effect, error) {
	return Call[wire.EffectReasonRequest, wire.Effect](ctx, c, wire.PermitRevoke, r)
}

// Reconcile starts one bounded attempt on an unknown effect.
func (c *Client) Reconcile(ctx context.Context, r wire.ReconcileRequest) (wire.Effect, error) {
	return Call[wire.ReconcileRequest, wire.Effect](ctx, c, wire.EffectReconcile, r)
}

// Settle states the outcome of an unknown effect with evidence.
func (c *Client) Settle(ctx context.Context, r wire.SettleRequest) (wire.Effect, error) {
	return Call[wire.SettleRequest, wire.Effect](ctx, c, wire.EffectSettle, r)
}

// Acknowledge accepts the risk of an unknown effect.
func (c *Client) Acknowledge(ctx context.Context, r wire.EffectReasonRequest) (wire.Effect, error) {
	return Call[wire.EffectReasonRequest, wire.Effect](ctx, c, wire.EffectAcknowledge, r)
}

// RunCancel stops further admissions of a run.
func (c *Client) RunCancel(ctx context.Context, r wire.RunRequest) (wire.Run, error) {
	return Call[wire.RunRequest, wire.Run](ctx, c, wire.RunCancel, r)
}

// RunFinish records the one outcome of a run.
func (c *Client) RunFinish(ctx context.Context, r wire.RunRequest) (wire.Run, error) {
	return Call[wire.RunRequest, wire.Run](ctx, c, wire.RunFinish, r)
}

// RunGet reads a run.
func (c *Client) RunGet(ctx context.Context, r wire.RunRequest) (wire.Run, error) {
	return Call[wire.RunRequest, wire.Run](ctx, c, wire.RunGet, r)
}

// Operations lists the registered contracts.
func (c *Client) Operations(ctx context.Context) (wire.List[wire.Operation], error) {
	return Call[wire.EmptyRequest, wire.List[wire.Operation]](ctx, c, wire.OperationList, wire.EmptyRequest{})
}

// Status reads the state of the ledger itself.
func (c *Client) Status(ctx context.Context) (wire.Status, error) {
	return Call[wire.EmptyRequest, wire.Status](ctx, c, wire.LedgerStatus, wire.EmptyRequest{})
}
