package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sample() History {
	return History{
		Form: Form, Law: "reload-once", About: "a \"quoted\" text with\n  \"steps\": [] in it & <more>", Seed: 1<<64 - 1,
		Setup: Setup{
			Replicas: 2, Flags: []string{"--settle=0s"}, FailurePolicy: "Fail", NoStreamingLists: true, TrackFields: true,
			OtherWebhooks: "around", Graph: true, Latency: Duration(25 * time.Millisecond), CrashAtWrite: 3,
		},
		Steps: []Step{
			{Do: "edit", On: "configmaps/shop/app", With: map[string]string{"n": "1", "a": ""}},
			{Wait: Duration(1500 * time.Millisecond), Do: "rare", With: map[string]string{"n": "2"}},
		},
		Trace: []string{"1", "2"},
	}
}

func TestWrittenHistoryIsReadBack(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "history.json")
	for _, h := range []History{sample(), {Form: Form}} {
		require.NoError(t, Write(name, h))
		read, err := Read(name, toys())
		require.NoError(t, err)
		assert.Equal(t, h, read)
	}
}

func TestEachStepIsOnALineOfItsOwn(t *testing.T) {
	t.Parallel()
	text, err := Encode(sample())
	require.NoError(t, err)
	assert.Contains(t, string(text), "\n    {\"wait\":\"1.5s\",\"do\":\"rare\",\"with\":{\"n\":\"2\"}}\n  ],\n")
}

func TestReadNamesFileStepAndField(t *testing.T) {
	t.Parallel()
	steps := func(text string) string {
		return `{"form":1,"seed":1,"setup":{"replicas":1},"steps":[{"do":"edit","with":{"n":"1"}},` + text + `]}`
	}
	setup := func(text string) string { return `{"form":1,"seed":1,"setup":` + text + `,"steps":[]}` }
	tests := map[string]struct{ text, want string }{
		"empty file":           {"", "EOF"},
		"no JSON":              {"hello", "invalid character"},
		"newer form":           {`{"form":2,"setup":{},"steps":[]}`, "form: 2 is newer than 1, which this program reads: use the version"},
		"older form":           {`{"form":0,"setup":{},"steps":[]}`, "form: 0 is older than 1, which this program reads: replay it with the version"},
		"no form":              {`{"setup":{},"steps":[]}`, "form: missing"},
		"crash before writes":  {setup(`{"crashAtWrite":-5}`), "setup.crashAtWrite: -5 is negative"},
		"unknown field":        {`{"form":1,"setup":{},"steps":[],"extra":1}`, `"extra"`},
		"negative seed":        {`{"form":1,"seed":-1,"setup":{},"steps":[]}`, "seed"},
		"no setup":             {`{"form":1,"seed":1,"steps":[]}`, "setup: missing"},
		"no steps":             {`{"form":1,"seed":1,"setup":{}}`, "steps: missing"},
		"text behind it":       {setup(`{"replicas":1}`) + "}", "after the end"},
		"second value":         {setup(`{"replicas":1}`) + " {}", "after the end"},
		"negative replicas":    {setup(`{"replicas":-1}`), "setup.replicas: -1"},
		"too many replicas":    {setup(`{"replicas":1000}`), "setup.replicas: 1000"},
		"unknown setup":        {setup(`{"replica":1}`), `setup: decode: json: unknown field "replica"`},
		"failure policy":       {setup(`{"failurePolicy":"fail"}`), `setup.failurePolicy: "fail"`},
		"other webhooks":       {setup(`{"otherWebhooks":"behind"}`), `setup.otherWebhooks: "behind"`},
		"second of none":       {setup(`{"second":{"replicas":0}}`), "setup.second.replicas: want 1 at least"},
		"too many of both":     {setup(`{"replicas":6,"second":{"replicas":4}}`), "setup.second.replicas: want 1 at least, and not more than 9"},
		"latency of minutes":   {setup(`{"latency":"3m"}`), "setup.latency: 3m0s is longer"},
		"unknown act":          {steps(`{"do":"jump","with":{"n":"1"}}`), `step 2: do: unknown act "jump"`},
		"no act":               {steps(`{"on":"x"}`), "step 2: do: missing"},
		"null for a step":      {steps(`null`), "step 2: do: missing"},
		"unknown in a step":    {steps(`{"do":"edit","to":"x"}`), `step 2: decode: json: unknown field "to"`},
		"parameter no text":    {steps(`{"do":"edit","with":{"n":1}}`), "step 2: decode"},
		"what the act refuses": {steps(`{"do":"edit"}`), "step 2 (edit): with.n: missing"},
		"negative wait":        {steps(`{"do":"edit","wait":"-1s"}`), "step 2: wait: negative duration"},
		"wait without a unit":  {steps(`{"do":"edit","wait":"10"}`), "step 2: wait:"},
		"number for a wait":    {steps(`{"do":"edit","wait":10}`), "step 2: decode"},
		"wait of weeks":        {steps(`{"do":"edit","wait":"1000h"}`), "step 2: wait: 1000h is longer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "kept.json")
			require.NoError(t, os.WriteFile(file, []byte(test.text), 0o600))
			_, err := Read(file, toys())
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
			assert.Contains(t, err.Error(), file)
		})
	}
}

func TestMissingFileIsAnError(t *testing.T) {
	t.Parallel()
	_, err := Read(filepath.Join(t.TempDir(), "none.json"), toys())
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestWordsHaveALineForEachStep(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSpace(sample().Words(toys())), "\n")
	require.Len(t, lines, 4)
	assert.Equal(t, "follows a trace of 2 decisions", lines[1])
	assert.Contains(t, lines[3], "1.5s  rare")
}

func TestWordsSayWhatIsNotAsUsual(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		setup Setup
		want  string
	}{
		"as usual":           {Setup{}, "seed 7, 1 replica\n"},
		"replicas and flags": {Setup{Replicas: 2, Flags: []string{"--a", "--b=c"}}, "seed 7, 2 replicas, flags --a --b=c\n"},
		"failurePolicy":      {Setup{FailurePolicy: "Fail"}, "seed 7, 1 replica, failurePolicy Fail\n"},
		"otherWebhooks":      {Setup{OtherWebhooks: "around"}, "seed 7, 1 replica, other webhooks around ours\n"},
		"checksum":           {Setup{OtherWebhooks: "checksum"}, "seed 7, 1 replica, another webhook after ours that writes a checksum of the template\n"},
		"graph":              {Setup{Graph: true}, "seed 7, 1 replica, custom resources that refer to each other\n"},
		"trackFields":        {Setup{TrackFields: true}, "seed 7, 1 replica, field managers are tracked\n"},
		"noStreamingLists":   {Setup{NoStreamingLists: true}, "seed 7, 1 replica, no streaming lists\n"},
		"latency":            {Setup{Latency: Duration(25 * time.Millisecond)}, "seed 7, 1 replica, each request takes 25ms\n"},
		"second": {
			Setup{Second: &Second{Replicas: 2, Scope: "--object-selector=note=b", Before: true}},
			"seed 7, 1 replica, a second installation with 2 more replicas, flag --object-selector=note=b, its webhook is called first\n",
		},
		"crashAtWrite": {Setup{CrashAtWrite: 3}, "seed 7, 1 replica, the replica is killed that makes write 3\n"},
	}
	for name, test := range tests {
		assert.Equal(t, test.want, History{Seed: 7, Setup: test.setup}.Words(toys()), name)
	}
}

func FuzzDecode(f *testing.F) {
	text, err := Encode(sample())
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"form":1,"seed":1,"setup":{"replicas":1},"steps":[{"do":"edit","wait":"1h","with":{"n":"1"}}]}`))
	f.Add([]byte(`{"form":1,"setup":{},"steps":[null,{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := Decode(text)
		if err != nil {
			return
		}
		again, err := Encode(h)
		require.NoError(t, err)
		read, err := Decode(again)
		require.NoError(t, err, string(again))
		third, err := Encode(read)
		require.NoError(t, err)
		require.Equal(t, string(again), string(third))
		require.NotEmpty(t, h.Words(toys()))
	})
}
