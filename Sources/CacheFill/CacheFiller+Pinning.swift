import DiskCache

extension CacheFiller {
    /// Pins a resource because a rule says so, even if it was stored before the rule existed. Done once for as long as
    /// the resource is open.
    package func pin(_ generation: Generation, of resource: OpenResource) {
        guard resource.beginPinning() else { return }
        let (store, logger) = (store, logger)
        store.perform {
            var isPinned = false
            repeat {
                // A generation that has only just begun is not in the index yet: the end of its transfer tries again.
                do throws(StoreError) { isPinned = try store.setPinned(true, generation.key) } catch {
                    logger.error("could not pin \(generation.key.text): \(error)")
                }
            } while resource.endPinning(isPinned: isPinned)
        }
    }
}
