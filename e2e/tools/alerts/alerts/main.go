// alerts runs unit tests of alerting rules: it evaluates each rule on given series with the engine of Prometheus, and compares
// the alerts that fire. The tests are files in the format of `promtool test rules`, which reads them as well. promtool itself
// takes minutes to build, since it contains the service discovery of every cloud.
//
//	alerts TESTS.yaml
package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: alerts TESTS.yaml")
		os.Exit(2)
	}
	passed, err := runFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d expectations are met\n", passed)
}

// testFile is a file of tests. Fields of promtool that are not here are errors.
type testFile struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []testCase     `yaml:"tests"`
}

type testCase struct {
	Name        string         `yaml:"name"`
	Interval    model.Duration `yaml:"interval"`
	InputSeries []inputSeries  `yaml:"input_series"`
	Alerts      []expectation  `yaml:"alert_rule_test"`
}

type inputSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

// expectation is which alerts of a name fire at a time.
type expectation struct {
	EvalTime  model.Duration `yaml:"eval_time"`
	Alertname string         `yaml:"alertname"`
	Alerts    []expected     `yaml:"exp_alerts"`
}

type expected struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// runFile returns how many expectations were met, or everything that differs.
func runFile(name string) (int, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, fmt.Errorf("read the tests: %w", err)
	}
	var tests testFile
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&tests); err != nil {
		return 0, fmt.Errorf("read the tests %s: %w", name, err)
	}
	if tests.EvaluationInterval <= 0 {
		return 0, fmt.Errorf("%s: evaluation_interval is missing", name)
	}
	rules, err := readRules(filepath.Dir(name), tests.RuleFiles)
	if err != nil {
		return 0, err
	}
	passed := 0
	var problems []error
	for _, test := range tests.Tests {
		n, err := test.run(rules, tests.EvaluationInterval)
		passed += n
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", test.Name, err))
		}
	}
	return passed, errors.Join(problems...)
}

// readRules returns the alerting rules of files, which are relative to a directory.
func readRules(directory string, files []string) ([]rulefmt.Rule, error) {
	var rules []rulefmt.Rule
	for _, file := range files {
		groups, problems := rulefmt.ParseFile(filepath.Join(directory, file), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
		if len(problems) > 0 {
			return nil, errors.Join(problems...)
		}
		for _, group := range groups.Groups {
			for _, rule := range group.Rules {
				if rule.Alert == "" || rule.KeepFiringFor != 0 {
					return nil, fmt.Errorf("%s: %s%s: recording rules and keep_firing_for are not supported", file, rule.Record, rule.Alert)
				}
				rules = append(rules, rule)
			}
		}
	}
	return rules, nil
}
