//! State that an application keeps per connection: a table, as servers keep one by file
//! descriptor.

use proto::ConnId;

/// Connections to values.
pub struct ConnMap<V> {
    places: Vec<Option<(ConnId, V)>>,
}

impl<V> Default for ConnMap<V> {
    fn default() -> Self {
        ConnMap { places: Vec::new() }
    }
}

impl<V> ConnMap<V> {
    /// Remembers `value` of a connection.
    pub fn insert(&mut self, id: ConnId, value: V) {
        if self.places.len() <= id.slot() {
            self.places.resize_with(id.slot() + 1, || None);
        }
        self.places[id.slot()] = Some((id, value));
    }

    /// Returns the state of a connection.
    pub fn get_mut(&mut self, id: ConnId) -> Option<&mut V> {
        let place = self.places.get_mut(id.slot())?.as_mut()?;
        (place.0 == id).then_some(&mut place.1)
    }

    /// Forgets a connection.
    pub fn remove(&mut self, id: ConnId) {
        if let Some(place) = self.places.get_mut(id.slot())
            && place.as_ref().is_some_and(|(known, _)| *known == id)
        {
            *place = None;
        }
    }
}
