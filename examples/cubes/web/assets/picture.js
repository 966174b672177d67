// A picture has, for the server and then for the client, the number of changed cubes and for each of
// them: index, position in millimeters, orientation x, y, z, w in 1/32767, and flags.
export function readPicture(buffer, place) {
  const v = new DataView(buffer);
  let at = 0;
  const i16 = () => { at += 2; return v.getInt16(at - 2, true); };
  const u16 = () => { at += 2; return v.getUint16(at - 2, true); };
  for (let side = 0; side < 2; side++) {
    for (let left = u16(); left > 0; left--) {
      const cube = {
        n: u16(),
        position: [i16() / 1000, i16() / 1000, i16() / 1000],
        turn: [i16() / 32767, i16() / 32767, i16() / 32767, i16() / 32767],
      };
      const flags = v.getUint8(at++);
      cube.interacting = (flags & 1) !== 0;
      cube.unseen = (flags & 2) !== 0;
      place(side, cube);
    }
  }
}
