package reference

// Owner is an object that a workload has an owner reference to. Its version does not count, nor does its UID: the garbage
// collector deletes what belongs to another object of the same name.
type Owner struct{ Group, Kind, Name string }

// String is for a message: KafkaProxy.kroxylicious.io/my-proxy.
func (o Owner) String() string {
	if o.Group == "" {
		return o.Kind + "/" + o.Name
	}
	return o.Kind + "." + o.Group + "/" + o.Name
}
