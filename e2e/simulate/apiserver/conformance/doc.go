// Package conformance compares the model of the API server with a real one: the same requests must have the same answers.
// It has only tests.
package conformance
