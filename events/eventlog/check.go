package eventlog

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events/wire"
)

// check judges what the server says about the stream; nil or a *Distrust that
// names every violation. Whether the server fsyncs cannot be seen from here.
func check(info *jetstream.StreamInfo, want Config) error {
	faults := append(weaknesses(info.Config, want), damages(statusOf(info))...)
	if len(faults) == 0 {
		return nil
	}
	return &Distrust{Reason: "stream " + wire.LogStream + ": " + strings.Join(faults, "; ")}
}

// weaknesses lists how the configuration could lose, remove, rewrite or forge
// entries, or keep readers out.
func weaknesses(c jetstream.StreamConfig, want Config) []string {
	var found []string
	for _, rule := range []struct {
		broken bool
		says   string
	}{
		{len(c.Subjects) != 1 || c.Subjects[0] != wire.LogSubject, "subjects are not exactly " + wire.LogSubject},
		{c.Storage != jetstream.FileStorage, "storage is not file"},
		{c.Replicas < want.Replicas, fmt.Sprintf("%d replicas, want %d", c.Replicas, want.Replicas)},
		{c.PersistMode != jetstream.DefaultPersistMode, "persists asynchronously"},
		{c.NoAck, "does not acknowledge"},
		{c.Retention != jetstream.LimitsPolicy, "retention is not limits"},
		{c.Discard != jetstream.DiscardNew, "discards old entries"},
		{c.MaxBytes <= 0, "no maximum size"},
		{c.MaxMsgs > 0, "limits the number of messages"},
		{c.MaxMsgsPerSubject > 0, "limits the number of messages per subject"},
		{c.MaxMsgSize > 0, "limits the size of a message"},
		{c.MaxAge > 0, "limits the age of messages"},
		{c.AllowMsgTTL || c.SubjectDeleteMarkerTTL > 0, "allows TTLs"},
		{c.AllowRollup, "allows rollup"},
		{!c.DenyDelete, "does not deny delete"},
		{!c.DenyPurge, "does not deny purge"},
		{!c.AllowDirect, "does not allow direct get"},
		{c.Sealed, "is sealed"},
		{c.Mirror != nil, "is a mirror"},
		{len(c.Sources) > 0, "has sources"},
		{c.SubjectTransform != nil, "transforms subjects"},
		{c.RePublish != nil, "republishes"},
		{c.AllowMsgCounter, "is a counter"},
		{c.AllowMsgSchedules, "allows scheduled messages"},
		{c.Duplicates > maxDuplicateWindow, "duplicate window is longer than " + maxDuplicateWindow.String()},
	} {
		if rule.broken {
			found = append(found, rule.says)
		}
	}
	return found
}

// damages lists what the server admits to have lost.
func damages(s Status) []string {
	var found []string
	if s.LastSeq > 0 && s.FirstSeq != 1 {
		found = append(found, fmt.Sprintf("begins at entry %d", s.FirstSeq))
	}
	if s.Lost > 0 {
		found = append(found, fmt.Sprintf("reports %d lost messages", s.Lost))
	}
	if s.Deleted > 0 {
		found = append(found, fmt.Sprintf("reports %d deleted messages", s.Deleted))
	}
	if len(found) == 0 && s.Messages != s.LastSeq {
		found = append(found, fmt.Sprintf("has %d messages up to entry %d", s.Messages, s.LastSeq))
	}
	return found
}

func statusOf(info *jetstream.StreamInfo) Status {
	s := Status{
		Stream:   info.Config.Name,
		Created:  info.Created.UTC(),
		Replicas: info.Config.Replicas,
		FirstSeq: info.State.FirstSeq,
		LastSeq:  info.State.LastSeq,
		Messages: info.State.Msgs,
		Bytes:    info.State.Bytes,
		MaxBytes: info.Config.MaxBytes,
		Deleted:  info.State.NumDeleted,
	}
	if info.State.Lost != nil {
		s.Lost = len(info.State.Lost.Msgs)
	}
	return s
}
