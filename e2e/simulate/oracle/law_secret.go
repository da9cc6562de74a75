package oracle

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/pod-reloader/pod-reloader/e2e/simulate/world"
)

// shortest is the shortest value that is looked for, in bytes: shorter ones occur by chance.
const shortest = 9

// secretFilter finds values of Secrets in texts. It looks at the first eight bytes of each value with a bit map, so that a
// text without any costs next to nothing.
type secretFilter struct {
	bits   [1 << 10]uint64
	values map[uint64][]secretValue
	known  map[string]bool
}

type secretValue struct {
	text []byte
	from string
}

func newSecretFilter() secretFilter {
	return secretFilter{values: map[uint64][]secretValue{}, known: map[string]bool{}}
}

func hash(prefix uint64) uint16 { return uint16(prefix * 0x9e3779b97f4a7c15 >> 48) }

// commit records the values of a Secret.
func (f *secretFilter) commit(c world.Commit) {
	if c.Key.Resource.Plural != "secrets" {
		return
	}
	for _, encoded := range world.Section(c.New, "data") {
		value, _ := encoded.(string)
		plain, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(plain) < shortest {
			continue
		}
		from := idOf(c.Key).String()
		f.add(plain, from)
		f.add(bytes.TrimRight([]byte(value), "="), from)
	}
}

func (f *secretFilter) add(value []byte, from string) {
	if f.known[string(value)] {
		return
	}
	f.known[string(value)] = true
	prefix := binary.LittleEndian.Uint64(value)
	h := hash(prefix)
	f.bits[h>>6] |= 1 << (h & 63)
	f.values[prefix] = append(f.values[prefix], secretValue{value, from})
}

// find returns which Secret a text has a value of; empty if there is none.
func (f *secretFilter) find(text []byte) string {
	if len(f.values) == 0 {
		return ""
	}
	for i := 0; i+8 <= len(text); i++ {
		prefix := binary.LittleEndian.Uint64(text[i:])
		h := hash(prefix)
		if f.bits[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, value := range f.values[prefix] {
			if bytes.HasPrefix(text[i:], value.text) {
				return value.from
			}
		}
	}
	return ""
}

// secretLaw is the law "secret".
type secretLaw struct {
	*ledger
	passive

	secrets secretFilter
}

func newSecretLaw(l *ledger) *secretLaw { return &secretLaw{ledger: l, secrets: newSecretFilter()} }

func (l *secretLaw) stored(c world.Commit) {
	if _, manifest := l.manifestOf(c.Key); !manifest {
		l.secrets.commit(c)
	}
	if path := world.PodPath(c.Key.Resource.Plural); path != nil && c.New != nil {
		l.searchManaged(c, world.Annotations(c.New))
		l.searchManaged(c, world.Annotations(world.Section(c.New, path...)))
	}
}

// searchManaged is the law "secret" for what the webhook or the loop has put into a stored workload.
func (l *secretLaw) searchManaged(c world.Commit, annotations world.Object) {
	for name, value := range annotations {
		text, _ := value.(string)
		if !isManagedAnnotation(name, l.options.Prefix) {
			continue
		}
		l.count("annotations searched for Secrets")
		l.search(c.At, "annotation", name+" of "+idOf(c.Key).String(), text)
	}
}

// reply is the law "secret" for warnings and errors that the webhook answers with. What is said about a Secret is about its own content.
func (l *secretLaw) reply(r world.Reply) {
	if r.Call.Key.Resource.Plural == "secrets" {
		return
	}
	where := "the answer to the " + r.Call.Verb + " of " + idOf(r.Call.Key).String()
	for _, warning := range r.Warnings {
		l.search(r.At, "reply", where, warning)
	}
	if r.Failure != nil {
		l.search(r.At, "reply", where, r.Failure.Message)
	}
}

// request is the law "secret": no request of the program has a value of a Secret, but for its own one with the keys.
func (l *secretLaw) request(call *world.Call) {
	if len(call.Body) == 0 || !l.isProgram(call) {
		return
	}
	if call.Key.Resource.Plural == "secrets" && call.Key.Namespace == l.options.KeySecret.Namespace &&
		(call.Key.Name == "" || l.isKeySecret(call.Key)) {
		return
	}
	l.count("bodies searched for Secrets")
	if from := l.secrets.find(call.Body); from != "" {
		l.violate(call.Arrived, broken{"secret", from, "body"},
			"%s sent a value of it at %s: %s %s", call.Client, l.when(call.Arrived), call.Verb, call.Path)
	}
}

// scraped is the law "secret" for the labels of metrics.
func (l *secretLaw) scraped(client string, families map[string]*dto.MetricFamily, at time.Time) {
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				l.search(at, "metric", client+" in "+name, label.GetValue())
			}
		}
	}
}

// search is the law "secret" for what the program prints.
func (l *secretLaw) search(at time.Time, how, where, text string) {
	if from := l.secrets.find([]byte(text)); from != "" {
		l.violate(at, broken{"secret", from, how}, "%s printed a value of it at %s: %s", where, l.when(at), text)
	}
}
