// Package chain holds the end-to-end tests of the checksum chain over custom resources. The resources have the shape of
// Kroxylicious': a proxy, virtual clusters that refer to it, and services, filters, ingresses, Secrets and ConfigMaps below
// them. The tests write their status as the operator would.
package chain
