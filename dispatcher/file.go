package dispatcher

import (
	"context"
	"io/fs"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/dispatcher/filewrite"
	"github.com/effectd/effectd/events"
)

// File writes one file atomically (see package filewrite). The operating system
// says what was proven, so the contract needs no outcomes: durable is succeeded,
// a precondition that did not hold is no_effect.
type File struct{ Now func() time.Time }

// Render builds the write.
func (f File) Render(s Send) (Shot, error) {
	w, err := s.Contract.FileWrite(s.input())
	if err != nil {
		return nil, err
	}
	write := filewrite.Write{Root: w.Root, Path: w.Path, Content: w.Content, Expect: string(w.Expected), Mode: fs.FileMode(w.Mode)}
	return fileShot{File: f, write: write}, write.Validate()
}

type fileShot struct {
	File
	write filewrite.Write
}

// Fire writes the file.
func (f fileShot) Fire(ctx context.Context, deadline time.Time) aggregate.Result {
	a := filewrite.Do(ctx, f.write, filewrite.Options{Deadline: deadline, Now: f.Now})
	evidence := events.Evidence{Source: "adapter", At: events.InstantOf(f.Now()), Detail: a.Detail, SHA256: a.SHA256}
	switch a.Proof {
	case filewrite.Written:
		return aggregate.Result{Outcome: events.OutcomeSucceeded, Means: events.MeansCompleted, Reason: events.ReasonClassified, Evidence: evidence}
	case filewrite.NotWritten:
		return aggregate.Result{Outcome: events.OutcomeNoEffect, Reason: a.Reason, Evidence: evidence}
	}
	return aggregate.Result{Reason: a.Reason, Evidence: evidence}
}
