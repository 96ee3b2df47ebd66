import DiskCache

extension CacheFiller {
    /// Pins a resource, as a rule says: what was stored before the rule was made, too. Once for as long as it is open.
    package func pin(_ generation: Generation, of resource: OpenResource) {
        guard resource.beginPinning() else { return }
        let (store, logger) = (store, logger)
        store.perform {
            var isPinned = false
            repeat {
                // Of what has just begun nothing is in the index: the end of its transfer tries again.
                do throws(StoreError) { isPinned = try store.setPinned(true, generation.key) } catch {
                    logger.error("could not pin \(generation.key.text): \(error)")
                }
            } while resource.endPinning(isPinned: isPinned)
        }
    }
}
