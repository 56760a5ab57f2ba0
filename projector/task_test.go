package projector

import (
	"fmt"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

func (w *world) openChild(id, parent events.TaskID, holders ...events.Actor) aggregate.Command {
	return aggregate.OpenTask{Caller: operator, ExpiresAt: w.at.Add(time.Hour), Request: wire.TaskOpenRequest{TaskID: id, Parent: parent,
		Budgets: events.Amounts{"usd_cents": 10, "effects": 1}, Holders: holders}}
}

// P7 for lists of tasks: everybody is shown the tasks that task.get shows, page by
// page, and no page names another.
func TestTaskList(t *testing.T) {
	w := newWorld(t)
	w.must(w.openChild("a", "root", rival.Actor()), w.openChild("a-deep", "a", rival.Actor(), producer.Actor()),
		w.openChild("z", "root", rival.Actor()), w.openChild("alone", "", rival.Actor()))
	p, q := shown(t, w)
	every := []events.TaskID{"a", "a-deep", "alone", "root", "z"}
	for who, want := range map[aggregate.Caller][]events.TaskID{
		operator: every, auditor: every, producer: {"a-deep", "root"}, rival: {"a", "a-deep", "alone", "root", "z"},
		approver: nil, executor: nil, foreign: {"root"},
	} {
		for _, limit := range []int{1, 2, 500} {
			var got []events.TaskID
			body := fmt.Sprintf(`{"limit":%d}`, limit)
			for {
				page := ask[*wire.List[*wire.Task]](t, q, who, wire.TaskList, body)
				for _, task := range page.Items {
					got = append(got, task.TaskID)
				}
				if page.Position != p.State().Head().Last || page.Cursor != "" && len(page.Items) != limit {
					t.Fatalf("%s: %d of %d at %s", who.Actor(), len(page.Items), limit, page.Position)
				}
				if page.Cursor == "" {
					break
				}
				body = fmt.Sprintf(`{"limit":%d,"cursor":%q}`, limit, page.Cursor)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s by %d: %s, want %s", who.Actor(), limit, got, want)
			}
		}
	}
	if refusal := refused(t, q, stranger, wire.TaskList, `{}`); refusal.Code != wire.Forbidden {
		t.Error(refusal)
	}
	if _, refusal := call(q, operator, wire.TaskList, `{"limit":501}`); refusal == nil || refusal.Field != "limit" {
		t.Error(refusal)
	}
}

// A list below a task has the task and its descendants; below one that the caller
// may not read it is refused like one that does not exist.
func TestTaskListUnder(t *testing.T) {
	w := newWorld(t)
	w.must(w.openChild("a", "root", rival.Actor()), w.openChild("a-deep", "a", rival.Actor()), w.openChild("b", "root", producer.Actor()))
	_, q := shown(t, w)
	for _, c := range []struct {
		who   aggregate.Caller
		under events.TaskID
		want  string
	}{
		{operator, "root", "[a a-deep b root]"}, {operator, "a", "[a a-deep]"}, {rival, "a-deep", "[a-deep]"}, {producer, "root", "[b root]"},
	} {
		var got []events.TaskID
		for _, task := range ask[*wire.List[*wire.Task]](t, q, c.who, wire.TaskList, fmt.Sprintf(`{"under":%q}`, c.under)).Items {
			got = append(got, task.TaskID)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s below %s: %s, want %s", c.who.Actor(), c.under, got, c.want)
		}
	}
	none := refused(t, q, producer, wire.TaskList, `{"under":"none"}`)
	if got := refused(t, q, producer, wire.TaskList, `{"under":"a"}`); *got != *none || none.Code != wire.UnknownTask {
		t.Errorf("%v, of one that does not exist %v", got, none)
	}
}
