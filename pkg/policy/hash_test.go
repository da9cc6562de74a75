package policy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-reloader/pod-reloader/pkg/digest"
	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Where the Record is gone, the hash is compared as a whole.
func TestDecideByTheHashAlone(t *testing.T) {
	t.Parallel()
	hash := func(id digest.KeyID) string {
		text, err := digest.Hash(id, map[reference.Ref]digest.State{a: state(t, a, "A", "1")})
		require.NoError(t, err)
		return text
	}
	differs := Verdict{Action: Reload, Reason: "a tracked object modified", Changes: []Change{{Any, Modified}}}
	adopt := Verdict{Action: Nothing, Reason: "first seen: the current configuration is adopted as the running one", Adopt: []reference.Ref{a}}
	for name, c := range map[string]struct {
		hash, now string
		change    func(*Input)
		want      Verdict
		stamped   bool
		may       bool
		// foreign: the hash may be under a key that the ring in memory does not have yet.
		foreign bool
	}{
		"equal":                   {hash: hash(newest(t)), now: "A", want: adopt, stamped: true},
		"equal, older key":        {hash: hash(oldest(t)), now: "A", want: adopt, stamped: true},
		"different":               {hash: hash(newest(t)), now: "B", want: differs, may: true},
		"gone":                    {hash: hash(newest(t)), now: "-", want: differs, may: true},
		"required and gone":       {hash: hash(newest(t)), now: "-", change: func(in *Input) { in.Required[a] = true }, want: differs, may: true},
		"not read":                {hash: hash(newest(t)), now: "", want: adopt, may: true},
		"tracking depends":        {hash: hash(newest(t)), now: "B", change: func(in *Input) { in.Intent.Dynamic = true }, want: adopt},
		"tracking depends, equal": {hash: hash(newest(t)), now: "A", change: func(in *Input) { in.Intent.Dynamic = true }, want: adopt, stamped: true},
		"a lost key":              {hash: "00000000" + hash(newest(t))[8:], now: "B", want: adopt, foreign: true},
		"a lost key, not read":    {hash: "00000000" + hash(newest(t))[8:], now: "", want: adopt, foreign: true},
		"another program's":       {hash: "abc", now: "B", want: adopt},
		"SAP's, equal": {hash: digest.Revision("ns", []string{"a"}, nil, map[reference.Ref]digest.State{a: state(t, a, "A", "2")}), now: "A", want: adopt, stamped: true, change: func(in *Input) {
			in.Namespace, in.Intent.ConfigMaps = "ns", []string{"a"}
		}},
		"SAP's, equal, one of each kind": {hash: digest.Revision("ns", []string{"a"}, []string{"s"}, map[reference.Ref]digest.State{a: state(t, a, "A", "2")}), now: "A", want: adopt, stamped: true, change: func(in *Input) {
			in.Namespace, in.Intent.ConfigMaps, in.Intent.Secrets = "ns", []string{"a"}, []string{"s"}
		}},
		"SAP's, different": {hash: digest.Revision("ns", []string{"a"}, nil, nil), now: "A", want: adopt, foreign: true, change: func(in *Input) {
			in.Namespace, in.Intent.ConfigMaps = "ns", []string{"a"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t, "", c.now)
			in.Known = KnownOf(c.hash)
			if c.change != nil {
				c.change(&in)
			}
			if c.foreign {
				c.want.Foreign, _ = digest.KeyOf(c.hash)
			}
			got := Assess(in)
			assert.Equal(t, c.want, got.Verdict)
			assert.Equal(t, c.stamped, got.stamped)
			assert.Equal(t, c.stamped && !strings.HasPrefix(name, "SAP's"), got.Current(), "SAP's digest covers the lists only")
			assert.Equal(t, name == "tracking depends", got.Outdated(), "a Change says it, or nothing can be compared")
			assert.Equal(t, c.may, got.MayReload)
			assert.Equal(t, c.now == "", len(got.Reads) > 0, "every content is needed")
		})
	}
}

// Where nothing is tracked any more, a hash that was over something says nothing.
func TestHashAloneOfNothingTrackedIsNoChange(t *testing.T) {
	t.Parallel()
	in := input(t, "", "A")
	hash, err := digest.Hash(newest(t), map[reference.Ref]digest.State{a: state(t, a, "A", "1")})
	require.NoError(t, err)
	in.Known, in.Intent.Tracked = KnownOf(hash), nil
	assert.Empty(t, Assess(in).Verdict.Changes)
}
