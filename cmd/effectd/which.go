package main

import (
	"context"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// which names one effect: by its id, or by the run and the step that asked for it.
type which struct {
	Effect   string `arg:"" optional:"" help:"Id of the effect."`
	RunID    string `name:"run-id" placeholder:"ID" help:"Instead of the id: the run, with --causal-id."`
	CausalID string `name:"causal-id" placeholder:"ID" help:"Instead of the id: the step, with --run-id."`
}

// Validate wants one way of naming; kong calls it.
func (w *which) Validate() error { return oneName(w.Effect, w.RunID, w.CausalID) }

func oneName(effect, run, causal string) error {
	switch {
	case effect == "" && (run == "" || causal == ""):
		return &usage{"name the effect: its id, or --run-id and --causal-id", ""}
	case effect != "" && (run != "" || causal != ""):
		return &usage{"name the effect either by its id, or by --run-id and --causal-id", ""}
	}
	return nil
}

// id is the id of the effect, asked for if need be.
func (w *which) id(ctx context.Context, l *client.Client) (events.EffectID, error) {
	if w.Effect != "" {
		return events.EffectID(w.Effect), nil
	}
	x, err := l.Get(ctx, wire.GetRequest{RunID: events.RunID(w.RunID), CausalID: events.CausalID(w.CausalID)})
	return x.EffectID, err
}
